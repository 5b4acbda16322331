#include "tools/bench/rows/numerics_rows.h"

#include <iterator>

namespace lockstep::bench {
namespace {

/// Each takes seconds: together they would be half of the time.
constexpr const char* kLargest = "*14336*,*16384*,*28672*,*T4096_t2,*T8192*,step_4096_tokens*";

std::vector<NumericsCase> all_cases() {
  auto all = product_cases(1);
  for (auto family :
       {row_op_cases(), expert_cases(), low_precision_cases(), step_cases(), generate_cases(), product_cases(2)})
    std::move(family.begin(), family.end(), std::back_inserter(all));
  return all;
}

}  // namespace

std::vector<NumericsCase> numerics_cases(const std::string& patterns) {
  auto cases = all_cases();
  std::vector<std::string> names;
  for (const auto& one : cases) names.push_back(one.name);
  if (!patterns.empty()) require_fit("numerics", names, patterns);
  std::erase_if(cases, [&](const NumericsCase& one) {
    return patterns.empty() ? fits(one.name, kLargest) : !fits(one.name, patterns);
  });
  return cases;
}

}  // namespace lockstep::bench
