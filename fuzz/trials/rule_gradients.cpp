// Gradients of ops on sharded tensors against LibTorch's autograd in float64.
#include <rapidcheck.h>

#include <algorithm>

#include "core/error.h"
#include "fuzz/calls/drawn_mesh.h"
#include "fuzz/calls/operand_forms.h"
#include "fuzz/calls/reference.h"
#include "fuzz/trials/gradients.h"
#include "fuzz/trials/rule_properties.h"
#include "runtime/context/scopes.h"

namespace lockstep::testing {

void gradients_equal_one_device(const OpCase& op_case, const Rules& rules) {
  const auto narrow = op_case.is(OpCase::kWide) ? c10::kFloat : c10::kBFloat16;
  const Numerics numerics{*rc::gen::element(c10::kFloat, c10::kDouble, narrow), false, Domain::kFloat64};
  const auto call = draw_call(op_case, numerics);
  const auto weights = draw_weights(reference(op_case, call, numerics));
  const auto expected = reference_gradients(op_case, call, {weights}, numerics);
  const DrawnMesh drawn(numerics.domain, rules, false);
  const auto forms = draw_forms(op_case, call, *drawn.mesh);
  const auto operands = place_all(*drawn.mesh, call, forms);
  const auto line = describe(call, operands, *drawn.mesh, numerics) + text_of(forms);
  const MeshScope scope(*drawn.mesh);  // formulas make constants
  std::vector<at::Tensor> actual;
  try {
    actual = sharded_gradients(call, operands, {weights}, [&](const at::Tensor& plain) {
      return scatter(plain, draw_layout(*drawn.mesh, plain));
    });
  } catch (const c10::Error& error) {
    RC_FAIL(line + ": " + error.what_without_backtrace());
  } catch (const std::exception& error) {
    RC_FAIL(line + ": " + error.what());
  }
  if (std::ranges::any_of(expected, [](const at::Tensor& gradient) { return gradient.defined(); }))
    ++compared_cases()[op_case.op];
  for (size_t i = 0; i < actual.size(); ++i) {
    const auto what = gradient_difference(actual[i], expected[i], call.tensor(i).sizes(), numerics);
    if (!what.empty()) RC_FAIL(fmt::format("{}: gradient {} {}", line, i, what));
  }
}

}  // namespace lockstep::testing
