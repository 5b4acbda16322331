#pragma once
#include <functional>
#include <string>
#include <vector>

#include "tools/bench/row.h"

/// `lockstep bench numerics`: canonical numerics beside LibTorch, fp32, in milliseconds (of the thread, where it is
/// one).
namespace lockstep::bench {

/// A row that has not been measured yet; measuring sets LibTorch's thread count.
struct NumericsCase {
  std::string name;
  std::function<BenchRow(const PairedOptions&)> measure;
};

/// mm_MxKxN_nt: linear layers of the Llama debugmodel and of 1B and 8B blocks, M tokens, K inputs, N outputs, beside
/// at::linear, which is MKL's; mm_MxKxN_nt_onednn: the same beside oneDNN's; mm_MxKxN_nn: gradients of their inputs
/// beside at::mm; mm_NxKxM_tn: gradients of their weights beside at::mm. attention_fwd_bwd_T<length>: causal attention
/// of four heads of size 64 (_d<size>: another) and its gradients beside LibTorch's fused kernel. With _t2 on two
/// threads, else on one.
std::vector<NumericsCase> product_cases(int threads);

/// Elementwise and row ops NAME_<tokens>x<width> and their gradients NAME_backward_..., on a canonical mesh of one
/// rank, dispatch included, beside what LibTorch runs for them.
std::vector<NumericsCase> row_op_cases();

/// hadamard_transform_<rows>x<n>_copy, _products: a transform of a million elements beside a copy of their bytes, and
/// beside two products with Hadamard matrices whose sizes multiply to n. quantized_error_<recipe>_rotated: by how much
/// of the exact one a product with outliers is wrong that is turned before it is quantised, beside one that is not.
std::vector<NumericsCase> low_precision_cases();

/// experts_fwd_bwd_<tokens>x<width>_<k>of<experts>x<hidden>: a feed-forward of experts and its gradients, on a
/// canonical mesh of one rank, beside rows that LibTorch picks by index, expert by expert.
std::vector<NumericsCase> expert_cases();

/// step_512_tokens, step_4096_tokens: training steps of the debugmodel on one rank beside plain LibTorch;
/// step_..._bf16: in bfloat16, canonical beside native numerics.
std::vector<NumericsCase> step_cases();

/// generate_<samples>x16: 16 tokens behind a prompt of 128 by the debugmodel, drawn from a cache of keys and values, on
/// one rank, canonical beside native numerics; _uncached: all tokens read again for each.
std::vector<NumericsCase> generate_cases();

/// Those whose name fits one of `patterns`: shell wildcards, separated by commas. BadInput if none does. Empty: all but
/// the largest, which take seconds each.
std::vector<NumericsCase> numerics_cases(const std::string& patterns = "");

}  // namespace lockstep::bench
