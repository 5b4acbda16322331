#include "core/elementary/instruction_set.h"

#include <cstdlib>

#include "core/error.h"

namespace lockstep {
namespace {

constexpr InstructionSet kSets[] = {InstructionSet::kBaseline, InstructionSet::kAvx2, InstructionSet::kAvx512};

bool supported(InstructionSet set) {
#if defined(__x86_64__)
  __builtin_cpu_init();
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  return set == InstructionSet::kBaseline || (set == InstructionSet::kAvx2 ? avx2 : avx512);
#else
  return set == InstructionSet::kBaseline;
#endif
}

InstructionSet limit() {
  const char* text = std::getenv("LOCKSTEP_INSTRUCTION_SET");
  if (text == nullptr || *text == '\0') return InstructionSet::kAvx512;
  for (const InstructionSet set : kSets) {
    if (name_of(set) == text) return set;
  }
  fail<BadInput>("LOCKSTEP_INSTRUCTION_SET is '{}', expected baseline, avx2 or avx512", text);
}

std::vector<InstructionSet> detect() {
  std::vector<InstructionSet> sets;
  for (const InstructionSet set : kSets) {
    if (set <= limit() && supported(set)) sets.push_back(set);
  }
  return sets;
}

}  // namespace

const std::vector<InstructionSet>& available_instruction_sets() {
  static const std::vector<InstructionSet> sets = detect();
  return sets;
}

InstructionSet best_instruction_set() { return available_instruction_sets().back(); }

std::string_view name_of(InstructionSet set) {
  switch (set) {
    case InstructionSet::kBaseline:
      return "baseline";
    case InstructionSet::kAvx2:
      return "avx2";
    case InstructionSet::kAvx512:
      return "avx512";
  }
  return "unknown";
}

}  // namespace lockstep
