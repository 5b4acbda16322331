#pragma once
#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "runtime/context/scopes.h"
#include "runtime/tensor/mesh.h"
#include "runtime/tensor/spec.h"

namespace lockstep::trainer {

/// Tensors [batch, heads, length, ...] whose length one mesh axis cuts, as what the ranks of each of its coordinates
/// have: tensors on submeshes.
class SequenceParts {
 public:
  /// Cut as `like` is. Throws BadInput where not one axis cuts its length.
  explicit SequenceParts(const TensorSpec& like);

  /// How many have any position.
  int64_t count() const { return count_; }
  int64_t length() const { return length_; }
  const Mesh& mesh(int64_t part) const;
  bool is_here(int64_t part) const { return mesh(part).local_count() > 0; }
  /// Those of the sequence that a part has.
  Range positions(int64_t part) const;

  /// What a part's ranks have of a tensor, contiguous.
  at::Tensor of(const at::Tensor& whole, int64_t part) const;
  /// That of each part that is here; the others are undefined.
  std::vector<at::Tensor> each(const at::Tensor& whole) const;
  /// What a part's ranks have of a tensor whose length is whole on all of them.
  at::Tensor gathered(const at::Tensor& whole, int64_t part) const;
  /// `rows` positions of it, as they lie on part `part`.
  const TensorSpec* spec(const TensorSpec& whole, int64_t part, int64_t rows) const;
  /// The tensor whose parts these are; those that are not here are not read.
  at::Tensor joined(const std::vector<at::Tensor>& parts, const TensorSpec* spec) const;

 private:
  at::Tensor shards_of(const at::Tensor& whole, int64_t part, const TensorSpec* spec) const;
  const TensorSpec* spec_there(const TensorSpec& whole, int64_t part, std::vector<int64_t> sizes) const;

  Layout layout_;
  const Mesh* mesh_;
  int axis_ = -1;
  int64_t length_, count_ = 0;
};

/// On all ranks alike: what is pending, or an unfinished sum, is finished before parts go ways of their own.
/// Differentiable.
at::Tensor finished(const at::Tensor& x);

/// places [b, l] of packed documents -> [b, 1, l], cut as the query [b, h, l, d] is; undefined if they are.
at::Tensor beside_query(const at::Tensor& places, const at::Tensor& query);

/// Which attention of a step it is: the same on all ranks, and when one of them is replayed alone.
uint64_t attention_number();

/// What is laid out as `like`, with other sizes in its last dimension, or without that (`size` < 0).
const TensorSpec* spec_like(const TensorSpec& like, int64_t size, c10::ScalarType dtype);

/// All parts that are here, one after the other from `first` on and round, in scopes of their own: ops are called alike
/// whichever ranks live here.
template <class Work>
void for_each_part_here(const SequenceParts& parts, const std::string& module, const Work& work, int64_t first = 0) {
  for (int64_t n = 0; n < parts.count(); ++n) {
    const int64_t part = (first + n) % parts.count();
    if (!parts.is_here(part)) continue;
    const ModuleScope scope((module.empty() ? "" : module + ".") + "context." + std::to_string(part));
    work(part);
  }
}

}  // namespace lockstep::trainer
