// Gradients of gradients of ops on sharded tensors against LibTorch's autograd in float64.
#include <ATen/Functions.h>
#include <rapidcheck.h>

#include "core/error.h"
#include "fuzz/calls/drawn_mesh.h"
#include "fuzz/calls/operand_forms.h"
#include "fuzz/calls/reference.h"
#include "fuzz/trials/gradients.h"
#include "fuzz/trials/rule_properties.h"
#include "fuzz/trials/second_derivatives.h"
#include "runtime/context/scopes.h"
#include "runtime/redistribution/gather.h"

namespace lockstep::testing {
namespace {

/// Terms are products of operands and of two weights, all of order 1; formulas of different terms cancel otherwise.
constexpr double kLeast = 1;

/// A sum of parts of order 1 is rounded to 2^-50; each use of an operand may have been summed in an order of its own,
/// so that terms which cancel do so less well. Far below what a value loses that went through float32.
constexpr double kLastBits = 0x1p-42;

/// Gradients, or why there are none.
struct Outcome {
  std::vector<at::Tensor> gradients;
  std::string refusal;
};

template <class Gradients>
Outcome outcome_of(const Gradients& gradients) {
  try {
    return {gradients(), ""};
  } catch (const c10::Error& error) {
    return {{}, error.what_without_backtrace()};
  } catch (const std::exception& error) {
    return {{}, error.what()};
  }
}

/// What may be refused, and where LibTorch gives nothing, has to be.
void check_refusals(const OpCase& op_case, const Outcome& actual, const Outcome& expected, const std::string& line) {
  if (!expected.refusal.empty()) {
    if (actual.refusal.empty()) RC_FAIL(line + ": LibTorch refuses what the mesh does not: " + expected.refusal);
    RC_DISCARD("LibTorch has no second derivative");
  }
  if (lacks_kernel(actual.refusal, "BFloat16'")) RC_DISCARD("no kernel");
  const auto* known = refused_second_derivative(op_case.op);
  if (actual.refusal.empty() || (known && actual.refusal.find(known) != std::string::npos)) return;
  RC_FAIL(line + ": " + actual.refusal);
}

/// The call on operands a few last bits away.
OpCall moved(const OpCall& call, const Numerics& numerics) {
  std::vector<at::Tensor> tensors;
  for (const auto& plain : tensors_of(call)) {
    const auto tensor = into_domain(numerics.domain, plain);
    tensors.push_back(tensor.is_floating_point() ? at::add(tensor, kLastBits) : plain);
  }
  auto result = call;
  result.arguments = with_tensors(call, tensors);
  return result;
}

/// Whether operands that differ in their last bits explain a difference: near RMSNorm's epsilon a row's second gradient
/// moves by hundreds of times what its operands move by, and is what thousands of times as large terms leave.
bool is_ill_conditioned(const at::Tensor& actual, const at::Tensor& expected, const at::Tensor& near) {
  if (!actual.defined() || !expected.defined() || expected.scalar_type() != c10::kDouble) return false;
  const auto whole = gather(actual);
  if (whole.sizes() != expected.sizes()) return false;
  const auto off = at::abs(at::sub(whole, expected)).max().item<double>();
  return off <= 4 * at::abs(at::sub(near, expected)).max().item<double>();
}

}  // namespace

void double_gradients_equal_one_device(const OpCase& op_case, const Rules& rules) {
  const auto narrow = op_case.is(OpCase::kWide) ? c10::kFloat : c10::kBFloat16;
  const Numerics numerics{*rc::gen::element(c10::kFloat, c10::kDouble, narrow), false, Domain::kFloat64, kLeast};
  const auto call = draw_call(op_case, numerics);
  const auto plain = tensors_of(call);
  const LinearFunctions functions{draw_weights(reference(op_case, call, numerics)), draw_weights(plain)};
  const auto expected = outcome_of([&] { return reference_gradients(op_case, call, functions, numerics); });
  const DrawnMesh drawn(numerics.domain, rules, false);
  const Place put = [&](const at::Tensor& tensor) { return scatter(tensor, draw_layout(*drawn.mesh, tensor)); };
  const auto forms = draw_forms(op_case, call, *drawn.mesh);
  const auto operands = place_all(*drawn.mesh, call, forms);
  const auto line = describe(call, operands, *drawn.mesh, numerics) + text_of(forms);
  const MeshScope scope(*drawn.mesh);  // formulas make constants
  const auto actual = outcome_of([&] { return sharded_gradients(call, operands, functions, put); });
  check_refusals(op_case, actual, expected, line);
  if (!actual.refusal.empty()) return void(++refused_cases()[op_case.op]);
  ++compared_cases()[op_case.op];
  for (size_t i = 0; i < actual.gradients.size(); ++i) {
    const auto& like = i < plain.size() ? plain[i] : functions.first[i - plain.size()];
    const auto what = gradient_difference(actual.gradients[i], expected.gradients[i], like.sizes(), numerics);
    const auto of = i < plain.size() ? fmt::format("operand {}", i) : fmt::format("weight {}", i - plain.size());
    if (what.empty()) continue;
    const auto near = reference_gradients(op_case, moved(call, numerics), functions, numerics)[i];
    if (!is_ill_conditioned(actual.gradients[i], expected.gradients[i], near))
      RC_FAIL(fmt::format("{}: second gradient of {} {}", line, of, what));
  }
}

}  // namespace lockstep::testing
