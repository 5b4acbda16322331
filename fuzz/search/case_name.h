#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::fuzz {

/// What reruns one case: "mm/layouts@5eed:100", and ":0.3.1" behind it where it was made smaller by these steps.
struct CaseName {
  std::string check;
  uint64_t seed = 0;
  int size = 0;  ///< RapidCheck's: how much of each range is drawn from, in percent
  std::vector<size_t> steps = {};

  bool operator==(const CaseName&) const = default;
};

std::string to_text(const CaseName& name);

/// BadInput for what is no name of a case.
CaseName parse_case_name(std::string_view text);

/// The `number`-th case of a check, the same on every machine and beside any other checks.
CaseName nth_case(const std::string& check, uint64_t seed, int64_t number);

}  // namespace lockstep::fuzz
