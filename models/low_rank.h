#pragma once
#include <memory>
#include <optional>

#include "models/module.h"

namespace lockstep::models {

struct LowRankOptions {
  int64_t rank = 8;
  double alpha = 16;       ///< the change is multiplied by alpha / rank
  double dropout = 0;      ///< share of the change's inputs that training drops
  bool magnitude = false;  ///< DoRA: rows have lengths of their own
};

/// A change of low rank to a matrix W [out, in], which is trained in W's place: W' = W + alpha / rank B A with A
/// [rank, in] and B [out, rank] (LoRA, Hu et al., 2021, arXiv 2106.09685, section 4.1). A starts uniform within
/// 1 / sqrt(in), as the paper's code has it, B as zeros: the model starts as it was.
///
/// With `magnitude` row i of W' is m_i (W + alpha / rank B A)_i / |(W + alpha / rank B A)_i|, where m [out] starts as
/// the lengths of W's rows (whoever assigns the tensors sees to it) and the length below the line is no function of A
/// and B in backward (DoRA, Liu et al., 2024, arXiv 2402.09353, equations 5 and 11).
///
/// A fused W has one A, and a B and an m that are fused of parts as W is: of "a.wq.weight" and "a.wk.weight" they are
/// "a.wq+wk.lora_a", "a.wq.lora_b", "a.wk.lora_b", "a.wq.magnitude", "a.wk.magnitude".
class LowRankChange {
 public:
  /// Parameters of `owner`, cut as `weight`, its own, is.
  LowRankChange(Module& owner, const Parameter& weight, const LowRankOptions& options);

  /// x W'^T (+ bias); x [..., in]. `weight`: W to compute with.
  at::Tensor forward(const at::Tensor& x, const at::Tensor& weight, const std::optional<at::Tensor>& bias) const;

  /// Null without `magnitude`.
  Parameter* magnitude() { return magnitude_ ? &*magnitude_ : nullptr; }

 private:
  LowRankOptions options_;
  Parameter a_, b_;
  std::optional<Parameter> magnitude_;
};

/// Lengths of rows [out] of a matrix [out, in]; none is 0, so that what is divided by them stays finite.
at::Tensor row_lengths(const at::Tensor& matrix);

}  // namespace lockstep::models
