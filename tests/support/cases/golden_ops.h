#pragma once
#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

/// The calls of canonical ops whose bits are golden (tests/support/golden_lines.h). A change here changes golden lines
/// without a change of canonical bits: calls are added, under names of their own, and left as they are.
namespace lockstep::testing {

/// A call on operands that have sizes for each of some widths.
struct GoldenOp {
  enum Dtypes { kAll, kWide, kNarrow };  ///< float32, float64 and bfloat16; without bfloat16; that alone

  std::string name;  ///< "products.mm"
  std::vector<int64_t> widths;
  std::vector<std::vector<int64_t>> (*operands)(int64_t width);
  /// Operands on a mesh of one rank, of golden_numbers().
  std::vector<at::Tensor> (*run)(const std::vector<at::Tensor>& operands);
  Dtypes dtypes = kAll;
  int64_t rounded_levels = 0;  ///< World::Options
  bool by_width = false;       ///< a line for each width, not one for all
};

std::vector<GoldenOp> golden_sums();
std::vector<GoldenOp> golden_products();
std::vector<GoldenOp> golden_attention();
std::vector<GoldenOp> golden_rows();   ///< norms, softmax, tables, losses
std::vector<GoldenOp> golden_gates();  ///< and rotary embedding
std::vector<GoldenOp> golden_functions();
std::vector<GoldenOp> golden_arithmetic();
std::vector<GoldenOp> golden_optimizer();  ///< and the integer sums of its gradient norm

}  // namespace lockstep::testing
