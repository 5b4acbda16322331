#pragma once
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <functional>
#include <string>
#include <vector>

#include "runtime/tensor/domain.h"

namespace lockstep::testing {

using Sizes = std::vector<int64_t>;
using Stack = torch::jit::Stack;

/// How large the tensors of a call are.
enum class Reach {
  kShort,  ///< up to 6 elements a dimension
  kLong,   ///< a dimension or two of up to 300, so that a sum has several leaves; reals of mixed magnitude
  kFlat    ///< one dimension of up to 1500, where there is a choice of sizes; reals of mixed magnitude
};

/// Draws the arguments of one call, inside a RapidCheck property. `exact` asks for small integers: sums and products of
/// a few are exact in every dtype, whatever their order.
class Inputs {
 public:
  Inputs(c10::ScalarType dtype, bool exact, Reach reach = Reach::kShort);

  c10::ScalarType dtype() const { return dtype_; }
  bool exact() const { return exact_; }

  int64_t number(int64_t low, int64_t high) const;  ///< both ends included; shrinks to `low`
  bool flag() const { return number(0, 1) == 1; }
  at::Scalar factor(int64_t most) const;  ///< 1 to `most`, or among reals of mixed magnitude also a third
  int64_t size() const;                   ///< 1 to 6, sometimes 0; or long
  int64_t length(int64_t most) const;     ///< 1 to `most`, or long
  Sizes sizes(int64_t least_dims, int64_t most_dims) const;
  /// One of `count` dimensions (at least one), from the front or from the back.
  int64_t dimension(size_t count) const;
  /// Two shapes of the same elements: a list of factors, grouped in two ways.
  std::pair<Sizes, Sizes> regrouped() const;
  /// A shape that broadcasts to `sizes`.
  Sizes broadcast(const Sizes& sizes) const;

  at::Tensor tensor(
      const Sizes& sizes);  ///< integers from -4 to 4 (16 bits: -1 to 1, unsigned: 0 to 8), or reals from -2 to 2
  at::Tensor wider(const Sizes& sizes);     ///< the same, sometimes float32 beside bfloat16
  at::Tensor positive(const Sizes& sizes);  ///< 1, 2 or 4 (exact divisors), or reals from 0.5 to 2.5
  at::Tensor distinct(const Sizes& sizes);  ///< a different integer at each of the first 251 places
  at::Tensor mask(const Sizes& sizes);
  at::Tensor integers(const Sizes& sizes, int64_t low, int64_t high);  ///< int64, both ends included

 private:
  template <class Value>
  at::Tensor fill(const Sizes& sizes, c10::ScalarType dtype, const Value& value);

  bool draws_long() const;
  int64_t whole(uint64_t bits) const;
  double real(uint64_t bits) const;

  c10::ScalarType dtype_;
  bool exact_;
  Reach reach_;
  mutable int long_left_ = 2;  ///< dimensions of a call that may still become long
  uint64_t salt_;
};

/// How one op is called in the properties.
struct OpCase {
  enum Trait : unsigned {
    kReal = 0,        ///< values round: compared in the float64 domain to 1e-12
    kExact = 1,       ///< on exact inputs the result has one set of bits
    kGradient = 2,    ///< differentiable: gradients are compared too
    kNoValues = 4,    ///< the result's values are arbitrary
    kFactory = 8,     ///< makes a tensor: the device argument names the mesh
    kOwnPeer = 16,    ///< the reference is a mesh of one rank, not LibTorch (random ops)
    kWide = 32,       ///< takes no 16-bit dtypes
    kDense = 64,      ///< needs operands that are contiguous
    kIntegers = 128,  ///< takes int64 as well
    kDeclared = 256,  ///< complex numbers, which no domain but the declared one stores
  };
  std::string op;  ///< a row's name, or that of an op above the table
  unsigned traits = kReal;
  std::function<Stack(Inputs&)> draw;  ///< leading arguments; the schema's defaults follow
  std::string called = op;             ///< the op that is called, where LibTorch has none of the row's name

  bool is(Trait trait) const { return (traits & trait) != 0; }
};

inline std::ostream& operator<<(std::ostream& stream, const OpCase& op_case) { return stream << op_case.op; }

/// One entry per row of the table, by family.
std::vector<OpCase> pointwise_cases();
std::vector<OpCase> pointwise_function_cases();
std::vector<OpCase> along_cases();
std::vector<OpCase> spatial_cases();
std::vector<OpCase> indexing_cases();
std::vector<OpCase> view_cases();
std::vector<OpCase> contraction_cases();  ///< products, reductions, look-ups
std::vector<OpCase> expert_cases();
std::vector<OpCase> row_cases();  ///< softmax, norms, random ops, the optimizer
std::vector<OpCase> attention_cases();
OpCase composite_attention();
std::vector<OpCase> random_cases();  ///< the other ops that draw
std::vector<OpCase> factory_cases();
/// Differentiable ops that are no rows but lead to them: norms, attention, cross-entropy, dropout.
std::vector<OpCase> composite_cases();

/// Ops without a row: LibTorch's decomposition, or every rank computes all of it.
std::vector<OpCase> decomposed_cases();
/// out= forms of all of those and of all rows; foreach forms.
std::vector<OpCase> out_cases();
std::vector<OpCase> foreach_cases();

/// All rows' entries.
const std::vector<OpCase>& op_cases();
/// Those whose values do not depend on memory, and the composite ones; no factories.
std::vector<OpCase> valued_cases();

}  // namespace lockstep::testing
