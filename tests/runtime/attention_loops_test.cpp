#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tests/support/attention_cases.h"

namespace lockstep {
namespace {

using testing::AttentionCase;
using testing::Numbers;

template <class Input, class T>
void kernels_agree_with_oracle() {
  const auto attention = AttentionCase<Input, T>::any();
  const int threads = *rc::gen::element(1, 2, 4);
  for (const InstructionSet set : available_instruction_sets())
    RC_ASSERT(attention.run(set, threads) == attention.expected);
}

RC_GTEST_PROP(AttentionLoops, GiveTheOraclesBitsInSinglePrecision, ()) { kernels_agree_with_oracle<float, float>(); }
RC_GTEST_PROP(AttentionLoops, GiveTheOraclesBitsInDoublePrecision, ()) { kernels_agree_with_oracle<double, double>(); }
RC_GTEST_PROP(AttentionLoops, GiveTheOraclesBitsForBfloat16, ()) {
  kernels_agree_with_oracle<kernels::Bfloat16, float>();
}

}  // namespace
}  // namespace lockstep
