#pragma once
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <string>

#include "core/elementary/instruction_set.h"

/// Tests that run once in each instruction set. One that this machine lacks is a skipped test that names it:
///
///     class ProductLoops : public testing::OnInstructionSet {};
///     TEST_P(ProductLoops, FollowTheTree) { ... GetParam() ... }
///     INSTANTIATE_TEST_SUITE_P(Sets, ProductLoops, testing::every_set(), testing::set_name);
namespace lockstep::testing {

/// By the same detection as the kernels'; LOCKSTEP_INSTRUCTION_SET limits it.
inline bool machine_has(InstructionSet set) {
  const auto& sets = available_instruction_sets();
  return std::find(sets.begin(), sets.end(), set) != sets.end();
}

inline std::string why_not(InstructionSet set) {
  return "NOT CHECKED: " + std::string(name_of(set)) +
         " (this machine lacks it, or LOCKSTEP_INSTRUCTION_SET forbids it)";
}

/// GetParam() is the set.
class OnInstructionSet : public ::testing::TestWithParam<InstructionSet> {
 protected:
  void SetUp() override {
    if (!machine_has(GetParam())) GTEST_SKIP() << why_not(GetParam());
  }
};

/// Those that kernels are compiled for, whether they run here or not.
inline auto every_set() {
  return ::testing::Values(InstructionSet::kBaseline, InstructionSet::kAvx2, InstructionSet::kAvx512);
}

inline std::string set_name(const ::testing::TestParamInfo<InstructionSet>& tested) {
  return std::string(name_of(tested.param));
}

/// RC_GTEST_PROP for the body of a TEST_P.
template <class Property>
void check_property(const Property& property) {
  rc::detail::checkGTest(property);
}

/// The variables, each followed by a space, that limit another process to `set`: its kernels, LibTorch's and MKL's.
inline std::string limited_to(InstructionSet set) {
  const bool avx2 = set == InstructionSet::kAvx2, avx512 = set == InstructionSet::kAvx512;
  const std::string libtorch = avx512 ? "avx512" : avx2 ? "avx2" : "default";
  const std::string mkl = avx512 ? "AVX512" : avx2 ? "AVX2" : "SSE4_2";
  return "LOCKSTEP_INSTRUCTION_SET=" + std::string(name_of(set)) + " ATEN_CPU_CAPABILITY=" + libtorch +
         " MKL_ENABLE_INSTRUCTIONS=" + mkl + " ";
}

}  // namespace lockstep::testing
