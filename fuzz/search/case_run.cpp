// One case through RapidCheck: its generators draw, its shrinking makes smaller; which case, and for how long, is ours.
#include "fuzz/search/case_run.h"

#include <rapidcheck.h>

#include <chrono>
#include <optional>

#include "core/error.h"

namespace lockstep::fuzz {
namespace {

using rc::detail::CaseDescription;
using rc::detail::CaseResult;
using Case = rc::Shrinkable<CaseDescription>;

/// What stands behind the place and the macro; of what was thrown, what it said.
std::string message_of(const std::string& description) {
  for (const std::string_view head : {"\n\n", "with message:\n"})
    if (const auto at = description.find(head); at != description.npos) return description.substr(at + head.size());
  return description;
}

CaseOutcome outcome_of(const Case& one) {
  const auto result = one.value().result;
  if (result.type == CaseResult::Type::Success) return {};
  if (result.type == CaseResult::Type::Discard) return {CaseOutcome::Kind::kLeftOut, result.description};
  return {CaseOutcome::Kind::kFailed, message_of(result.description)};
}

Case first_case(const Check& check, const CaseName& name) {
  return rc::detail::toProperty(check.property)(rc::Random(name.seed), name.size);
}

std::optional<Case> after(const Case& one, size_t step) {
  auto next = one.shrinks();
  for (size_t i = 0;; ++i) {
    auto smaller = next.next();
    if (!smaller) return std::nullopt;
    if (i == step) return *smaller;
  }
}

Case case_of(const Check& check, const CaseName& name) {
  auto one = first_case(check, name);
  for (const auto step : name.steps) {
    auto next = after(one, step);
    if (!next) fail<BadInput>("{}: there is no such case any more: {} draws otherwise now.", to_text(name), name.check);
    one = *next;
  }
  return one;
}

}  // namespace

CaseOutcome run_case(const Check& check, const CaseName& name) { return outcome_of(case_of(check, name)); }

SmallerCase shrink_case(const Check& check, const CaseName& failed, double seconds) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  auto one = case_of(check, failed);
  SmallerCase smallest{failed, outcome_of(one).message};
  for (bool is_smaller = true; is_smaller;) {
    is_smaller = false;
    auto candidates = one.shrinks();
    for (size_t step = 0; !is_smaller && Clock::now() < end; ++step) {
      const auto candidate = candidates.next();
      if (!candidate) break;
      ++smallest.tried;
      const auto outcome = outcome_of(*candidate);
      if (!outcome.failed()) continue;
      one = *candidate;
      smallest.name.steps.push_back(step);
      smallest.message = outcome.message;
      is_smaller = true;
    }
  }
  return smallest;
}

}  // namespace lockstep::fuzz
