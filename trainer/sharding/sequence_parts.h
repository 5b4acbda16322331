#pragma once
#include <ATen/core/Tensor.h>

#include <vector>

#include "runtime/tensor/mesh.h"
#include "runtime/tensor/spec.h"

namespace lockstep::trainer {

/// Tensors [batch, heads, length, ...] whose length one mesh axis cuts, as what the ranks of each of its coordinates
/// have: tensors on submeshes.
class SequenceParts {
 public:
  /// Cut as `like` is. Throws BadInput where not one axis cuts its length.
  explicit SequenceParts(const at::Tensor& like);

  /// How many have any position.
  int64_t count() const { return count_; }
  int64_t length() const { return length_; }
  const Mesh& mesh(int64_t part) const;
  bool is_here(int64_t part) const { return mesh(part).local_count() > 0; }
  /// Those of the sequence that a part has.
  Range positions(int64_t part) const;

  /// What a part's ranks have of a tensor, contiguous.
  at::Tensor of(const at::Tensor& whole, int64_t part) const;
  /// What part `of` has of it, as it lies on part `part`.
  const TensorSpec* spec(const at::Tensor& whole, int64_t part, int64_t of) const;
  /// The tensor whose parts these are; those that are not here are not read.
  at::Tensor joined(const std::vector<at::Tensor>& parts, const TensorSpec* spec) const;

 private:
  Layout layout_;
  const Mesh* mesh_;
  int axis_ = -1;
  int64_t length_, count_ = 0;
};

}  // namespace lockstep::trainer
