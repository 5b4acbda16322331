#include "tests/rng/known_answers.h"

#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "rng/fill.h"
#include "tests/support/instruction_sets.h"

namespace lockstep::rng {
namespace {

const KnownAnswers& answers() {
  static const KnownAnswers read = read_known_answers(LOCKSTEP_SOURCE_DIR "/rng/known_answers.txt");
  return read;
}

uint64_t join(uint32_t low, uint32_t high) { return uint64_t{high} << 32 | low; }

TEST(KnownAnswers, Philox) {
  ASSERT_GE(answers().philox.size(), 3u);
  for (const auto& a : answers().philox) {
    const Counter counter{join(a.counter[0], a.counter[1]), join(a.counter[2], a.counter[3])};
    const auto result = words(Key{join(a.key[0], a.key[1])}, counter);
    for (int i = 0; i < 4; ++i)
      EXPECT_EQ(result.word[i], a.words[i]) << "known_answers.txt:" << a.line << " word " << i;
  }
}

class Draws : public testing::OnInstructionSet {};
INSTANTIATE_TEST_SUITE_P(Sets, Draws, testing::every_set(), testing::set_name);

TEST_P(Draws, OfEveryDistributionAndDtypeAreTheKnownAnswers) {
  constexpr std::size_t kValues = 8;
  ASSERT_GE(answers().draws.size(), 35u);
  for (const auto& a : answers().draws) {
    uint64_t out[kValues] = {};
    fill(out, a.kind, a.distribution, Key{a.seed}, a.stream, Subarray::whole({kValues}, a.index), GetParam());
    std::vector<uint64_t> values;
    for (std::size_t i = 0; i < kValues; ++i) values.push_back(bits_at(out, a.kind, i));
    EXPECT_EQ(values, a.values) << "known_answers.txt:" << a.line
                                << fmt::format("; drawn: {:x}", fmt::join(values, " "));
  }
}

}  // namespace
}  // namespace lockstep::rng
