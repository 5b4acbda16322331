#include "fuzz/checks/op_checks.h"

#include <rapidcheck.h>

#include "fuzz/trials/canonical_trial.h"
#include "runtime/planning/rules/built_in_rules.h"

namespace lockstep::fuzz {
namespace {

using namespace testing;
using Trait = OpCase::Trait;

class OpChecks {
 public:
  OpChecks(Rules native, Rules canonical) : native_(std::move(native)), canonical_(std::move(canonical)) {}

  Checks take() { return std::move(checks_); }

  void add_rows() {
    for (const auto& row : op_cases()) {
      add(row, "candidates", [row, rules = native_] { candidates_equal_one_device(row, rules); });
      add(row, "layouts", [row, rules = native_] { random_layouts_equal_one_device(row, rules); });
      if (const auto op = in_place_form(row.op)) {
        // squeeze_ and its like write no elements, and are refused; LibTorch itself has a detach_.
        const bool is_refused = row.op != "detach" && !native_->find(op_name(*op));
        add(
            row, "in_place", [row, rules = native_] { in_place_equals_one_device(row, rules); }, is_refused);
      }
    }
  }

  void add_decomposed() {
    for (const auto& cases : {decomposed_cases(), out_cases(), foreach_cases()})
      for (const auto& row : cases) {
        add(row, "layouts", [row, rules = native_] { random_layouts_equal_one_device(row, rules); });
        if (row.is(Trait::kGradient))
          add(row, "gradients", [row, rules = native_] { gradients_equal_one_device(row, rules); });
      }
  }

  void add_refusals() {
    // Ops that draw have one operand, of any sizes, and no peer in LibTorch.
    for (const auto& row : with_composites([](const OpCase& one) { return !one.is(Trait::kOwnPeer); }))
      add(row, "refusals", [row, rules = native_] { refuses_as_one_device(row, rules); });
  }

  void add_gradients() {
    for (const auto& row : with_composites([](const OpCase& one) { return one.is(Trait::kGradient); })) {
      add(row, "gradients", [row, rules = native_] { gradients_equal_one_device(row, rules); });
      add_canonical(row, "canonical_gradients", true);
    }
  }

  void add_canonical_rows() {
    for (const auto& row : valued_cases()) add_canonical(row, "canonical", false);
  }

 private:
  void add(const OpCase& row, const char* check, std::function<void()> property, bool is_refused = false) {
    checks_.push_back({row.op + "/" + check, std::move(property), is_refused});
  }

  void add_canonical(const OpCase& row, const char* check, bool gradients) {
    const auto property = [row, gradients, rules = canonical_] {
      canonical_bits_equal_one_rank(row, *rc::gen::element(Reach::kShort, Reach::kLong), gradients, rules);
    };
    add(row, check, property, refused_by_canonical(row.op));
  }

  template <class Wanted>
  static std::vector<OpCase> with_composites(const Wanted& wanted) {
    auto all = composite_cases();
    all.insert(all.end(), op_cases().begin(), op_cases().end());
    std::erase_if(all, [&](const OpCase& one) { return one.is(Trait::kFactory) || !wanted(one); });
    return all;
  }

  Rules native_, canonical_;
  Checks checks_;
};

}  // namespace

Checks op_checks(Rules native, Rules canonical) {
  OpChecks checks(native ? native : built_in_rules(), std::move(canonical));
  checks.add_rows();
  checks.add_decomposed();
  checks.add_refusals();
  checks.add_gradients();
  checks.add_canonical_rows();
  return checks.take();
}

}  // namespace lockstep::fuzz
