#pragma once
#include <ATen/core/Tensor.h>

#include <tuple>
#include <utility>
#include <vector>

#include "core/range.h"
#include "runtime/kernels/sums/sum_tree.h"
#include "runtime/own_ops/mesh_ops.h"
#include "runtime/tensor/spec.h"
#include "trainer/attention/row_inputs.h"

namespace lockstep::trainer {

/// Causal attention of some query rows of a sequence to keys that come block by block, in their order, none of them
/// behind the last row's own.
class BlockAttention {
 public:
  /// query [b, h*g, rows.length, d], `rows` of `length`; values have `width` elements.
  BlockAttention(const at::Tensor& query, int64_t width, Range rows, int64_t length, const RowInputs& beside = {});

  /// The dtype of sums, and of the log-sum-exp.
  static c10::ScalarType wide(const at::Tensor& query);

  void add(const at::Tensor& key, const at::Tensor& value, Range keys);
  /// Output, in the query's dtype, and log-sum-exp.
  std::tuple<at::Tensor, at::Tensor> result() const;

  /// Gradients of a block's keys and values, [pieces, ...] (GradientOfKeys). `saved`: gradient, query, output and
  /// log-sum-exp.
  std::pair<at::Tensor, at::Tensor> add_backward(const std::vector<at::Tensor>& saved, const at::Tensor& key,
                                                 const at::Tensor& value, Range keys);
  at::Tensor query_gradient() const;

 private:
  std::vector<Range> native_parts(Range keys) const;
  std::pair<at::Tensor, at::Tensor> add_native_backward(const std::vector<at::Tensor>& saved, const at::Tensor& key,
                                                        const at::Tensor& value, Range keys);
  void add_native(const at::Tensor& key, const at::Tensor& value, Range keys);
  /// The block's, to base e or 2.
  std::tuple<at::Tensor, at::Tensor> native_block(const at::Tensor& key, const at::Tensor& value, Range keys) const;
  /// Whether some row does not see all of them.
  bool hides(Range keys) const { return keys.end() > rows_.start + 1; }

  at::Tensor query_;
  bool canonical_;
  int64_t width_;
  double scale_;
  Range rows_;
  int64_t length_;
  at::Tensor places_;  ///< undefined: a sequence is one document, and nothing is dropped
  mesh_ops::Dropout dropout_;
  at::Tensor sums_, weights_;  ///< of mesh_ops::attention_over(); native: the output and log-sum-exp so far
  at::Tensor query_gradient_;
};

/// The sum of a block's gradients over all query rows, of which parts come as pieces [pieces, b, h, s, ...]: canonical
/// nodes of the tree over rows, or one sum (native).
class GradientOfKeys {
 public:
  GradientOfKeys(const TensorSpec& like, int64_t length);
  /// How many pieces some rows are.
  static int64_t nodes(const TensorSpec& like, Range rows, int64_t length);

  /// In any order. Undefined: they attend to none of the keys.
  void add(Range rows, const at::Tensor& pieces);
  at::Tensor finish();

 private:
  bool canonical_;
  SumTree tree_;
  SumJoiner<at::Tensor> joiner_;
  at::Tensor sum_;
};

}  // namespace lockstep::trainer
