#include "fuzz/checks/op_checks.h"

#include <rapidcheck.h>

#include "fuzz/trials/canonical_trial.h"
#include "fuzz/trials/second_derivatives.h"
#include "runtime/dispatch/service.h"
#include "runtime/planning/rules/built_in_rules.h"

namespace lockstep::fuzz {
namespace {

using namespace testing;
using Trait = OpCase::Trait;

class OpChecks {
 public:
  OpChecks(Rules native, Rules canonical) : native_(std::move(native)), canonical_(std::move(canonical)) {}

  Checks take() { return std::move(checks_); }

  void add_forward(const OpCase& row) {
    add(row, "candidates", [row, rules = native_] { candidates_equal_one_device(row, rules); });
    add(row, "layouts", [row, rules = native_] { random_layouts_equal_one_device(row, rules); });
    const auto op = in_place_form(row.op);
    if (!op) return;
    // LibTorch itself has a detach_.
    const bool is_refused = row.op != "detach" && service_of(*native_, *op).way == Service::kMissing;
    const auto in_place = [row, rules = native_] { in_place_equals_one_device(row, rules); };
    add(row, "in_place", in_place, is_refused);
  }

  void add_decomposed() {
    for (const auto& cases : {decomposed_cases(), out_cases(), foreach_cases()})
      for (const auto& row : cases) {
        add(row, "layouts", [row, rules = native_] { random_layouts_equal_one_device(row, rules); });
        add_gradients(row);
      }
  }

  void add_refusals(const OpCase& row) {
    // Ops that draw have one operand, of any sizes, and no peer in LibTorch.
    if (!row.is(Trait::kOwnPeer) && !row.is(Trait::kFactory))
      add(row, "refusals", [row, rules = native_] { refuses_as_one_device(row, rules); });
  }

  void add_gradients(const OpCase& row) {
    if (!row.is(Trait::kGradient) || row.is(Trait::kFactory)) return;
    add(row, "gradients", [row, rules = native_] { gradients_equal_one_device(row, rules); });
    add(
        row, "double_gradients", [row, rules = native_] { double_gradients_equal_one_device(row, rules); },
        has_no_second_derivative(row.op));
  }

  void add_canonical(const OpCase& row) {
    if (row.is(Trait::kFactory)) return;
    if (!row.is(Trait::kNoValues)) add_canonical(row, "canonical", false);
    if (row.is(Trait::kGradient)) add_canonical(row, "canonical_gradients", true);
  }

 private:
  void add_canonical(const OpCase& row, const char* check, bool gradients) {
    const auto property = [row, gradients, rules = canonical_] {
      canonical_bits_equal_one_rank(row, *rc::gen::element(Reach::kShort, Reach::kLong), gradients, rules);
    };
    add(row, check, property, refused_by_canonical(row.op));
  }

  void add(const OpCase& row, const char* check, std::function<void()> property, bool is_refused = false) {
    checks_.push_back({row.op + "/" + check, std::move(property), is_refused});
  }

  Rules native_, canonical_;
  Checks checks_;
};

}  // namespace

Checks op_checks(Rules native, Rules canonical) {
  OpChecks checks(native ? native : built_in_rules(), std::move(canonical));
  for (const auto& row : op_cases()) checks.add_forward(row);
  for (const auto& rows : {composite_cases(), op_cases()})
    for (const auto& row : rows) checks.add_refusals(row), checks.add_gradients(row), checks.add_canonical(row);
  checks.add_decomposed();
  return checks.take();
}

Checks checks_of_row(const OpCase& row, Rules native, Rules canonical) {
  const auto* rule = native->find(row.op);
  const bool has_form = rule && rule->canonical != Rule::Canonical::kRefuses;
  if (!canonical && has_form) canonical = built_in_rules(lockstep::Numerics::kCanonical)->with(*rule);
  OpChecks checks(std::move(native), canonical);
  checks.add_forward(row);
  checks.add_refusals(row);
  checks.add_gradients(row);
  if (canonical) checks.add_canonical(row);
  return checks.take();
}

}  // namespace lockstep::fuzz
