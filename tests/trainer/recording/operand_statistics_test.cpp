// What a deviation of a replay says of the operands that its op had.
#include "replay/play/operand_statistics.h"

#include <ATen/Functions.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "runtime/context/observer.h"
#include "runtime/context/world.h"
#include "runtime/tensor/sharded_tensor.h"

namespace lockstep::replay {
namespace {

using ::testing::ElementsAre;

class Statistics final : public Observer {
 public:
  void after_op(const OpEvent& event, std::span<const c10::IValue>) override {
    for (size_t i = 0; i < 2; ++i) of_ranks.push_back(operand_statistics(event, i));
  }
  std::vector<std::string> of_ranks;
};

/// Of the one operand of an op on tp=2, by rank.
std::vector<std::string> statistics_of(const std::vector<float>& values) {
  World world(World::Options{.rank_count = 2});
  const auto operand = distribute(at::tensor(values), Layout::parse(world.mesh("tp=2"), "[tp=S(0)]"));
  Statistics statistics;
  const ObserverScope scope(world.observers(), statistics);
  at::relu(operand);
  return statistics.of_ranks;
}

TEST(OperandStatistics, AreOfWhatIsFinite) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity(), kNan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THAT(statistics_of({1, -3, 5, 7, kInfinity, 2, kNan, 4}),
              ElementsAre("    self         Float[8] [tp=S(0)]: -3 to 7, mean 2.5",
                          "    self         Float[8] [tp=S(0)]: 2 to 4, mean 3, 2 not finite"));
  EXPECT_THAT(statistics_of({-kInfinity, kNan, 0.5}),
              ElementsAre("    self         Float[3] [tp=S(0)]: none of 2 elements is finite",
                          "    self         Float[3] [tp=S(0)]: 0.5 to 0.5, mean 0.5"));
  EXPECT_THAT(statistics_of({2}), ElementsAre("    self         Float[1] [tp=S(0)]: 2 to 2, mean 2",
                                              "    self         Float[1] [tp=S(0)]: no elements"));
}

}  // namespace
}  // namespace lockstep::replay
