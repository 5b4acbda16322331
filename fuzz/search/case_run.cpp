// One case through RapidCheck: its generators draw, its shrinking makes smaller; which case, and for how long, is ours.
#include "fuzz/search/case_run.h"

#include <rapidcheck.h>

#include <chrono>
#include <optional>

#include "fuzz/cases/drawn.h"

namespace lockstep::fuzz {
namespace {

using rc::detail::CaseDescription;
using rc::detail::CaseResult;
using Case = rc::Shrinkable<CaseDescription>;

/// What stands behind the place and the macro; of what was thrown, what it said without LibTorch's stack.
std::string message_of(const std::string& description) {
  size_t begin = 0;
  for (const std::string_view head : {"\n\n", "with message:\n"})
    if (const auto at = description.find(head); at != description.npos) begin = std::max(begin, at + head.size());
  return description.substr(begin, description.find("\nException raised from") - begin);
}

CaseOutcome outcome_of(const Case& one) {
  const auto result = one.value().result;  // runs it
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
    if (!next)
      fail<NoSuchCase>("{}: there is no such case any more: {} draws otherwise now.", to_text(name), name.check);
    one = *next;
  }
  return one;
}

}  // namespace

CaseOutcome run_case(const Check& check, const CaseName& name) {
  const auto one = case_of(check, name);
  testing::drawn_digest() = name.seed;
  auto outcome = outcome_of(one);
  outcome.drawn = testing::drawn_digest();
  return outcome;
}

SmallerCase shrink_case(const Check& check, const CaseName& failed, double seconds) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  auto one = case_of(check, failed);
  testing::drawn_digest() = failed.seed;
  SmallerCase smallest{failed, outcome_of(one).message, testing::drawn_digest()};
  for (bool is_smaller = !smallest.message.empty(); is_smaller;) {
    is_smaller = false;
    auto candidates = one.shrinks();
    for (size_t step = 0; !is_smaller && Clock::now() < end; ++step) {
      const auto candidate = candidates.next();
      if (!candidate) break;
      ++smallest.tried;
      testing::drawn_digest() = failed.seed;
      const auto outcome = outcome_of(*candidate);
      if (!outcome.failed()) continue;
      one = *candidate;
      smallest.name.steps.push_back(step);
      smallest.message = outcome.message, smallest.drawn = testing::drawn_digest();
      is_smaller = true;
    }
  }
  return smallest;
}

}  // namespace lockstep::fuzz
