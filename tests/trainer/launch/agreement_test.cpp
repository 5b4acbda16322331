// Processes that agree or do not, as threads on a store in memory.
#include "trainer/launch/agreement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <torch/csrc/distributed/c10d/HashStore.hpp>

#include "tests/support/recorded_steps.h"

namespace lockstep::trainer {
namespace {

using ::testing::HasSubstr;
using testing::message_of;

class Agreement : public ::testing::Test {
 protected:
  SignedStore store(const std::string& token = "the secret of this job") const {
    return {memory_, token, "test/", std::chrono::seconds(5), "a rank has waited"};
  }

  /// What each rank was told; empty where all went well.
  std::vector<std::string> told(const std::vector<Facts>& facts) {
    std::vector<std::future<std::string>> ranks;
    for (int rank = 0; rank < static_cast<int>(facts.size()); ++rank)
      ranks.push_back(std::async(std::launch::async, [&, rank] {
        try {
          agree(store(), rank, static_cast<int>(facts.size()), facts[static_cast<size_t>(rank)]);
          return std::string();
        } catch (const Disagreement& error) {
          values_ = rank == 0 ? error.values() : values_;
          return std::string(error.what());
        }
      }));
    std::vector<std::string> texts;
    for (auto& rank : ranks) texts.push_back(rank.get());
    return texts;
  }

  c10::intrusive_ptr<c10d::Store> memory_ = c10::make_intrusive<c10d::HashStore>();
  std::map<int, std::string> values_;
};

TEST_F(Agreement, OfEqualFactsGoesOn) {
  const Facts facts{{"training.seq_len", "16"}, {"the build", "a1"}};
  EXPECT_EQ(told({facts}), (std::vector<std::string>(1)));
  memory_ = c10::make_intrusive<c10d::HashStore>();
  EXPECT_EQ(told({facts, facts, facts}), (std::vector<std::string>(3)));
}

TEST_F(Agreement, NamesTheFirstFactThatDiffersAndBothValuesOnEveryRank) {
  const auto facts = [](const char* build, const char* length) {
    return Facts{{"the build", build}, {"training.seq_len", length}};
  };
  const auto texts = told({facts("a", "16"), facts("a", "16"), facts("a", "32"), facts("a", "8")});
  for (const auto& text : texts)
    EXPECT_EQ(text,
              "the processes were not started alike: training.seq_len is 16 on rank 0, 32 on rank 2. Give all the same "
              "job, build, data and checkpoints.");
  EXPECT_EQ(values_, (std::map<int, std::string>{{0, "16"}, {1, "16"}, {2, "32"}, {3, "8"}}));
}

TEST_F(Agreement, AFactThatOnlyOneKnowsIsADifference) {
  const auto texts = told({{{"a", "1"}}, {{"a", "1"}, {"b", "2"}}});
  for (const auto& text : texts) EXPECT_THAT(text, HasSubstr("b is unknown on rank 0, 2 on rank 1"));
}

TEST_F(Agreement, OrderIsPartOfWhatIsCompared) {
  const auto texts = told({{{"a", "1"}, {"b", "2"}}, {{"a", "1"}, {"b", "3"}}, {{"a", "0"}, {"b", "2"}}});
  for (const auto& text : texts) EXPECT_THAT(text, HasSubstr("a is 1 on rank 0, 0 on rank 2"));
}

TEST_F(Agreement, WhatIsNotSignedIsNotBelieved) {
  store("another job's secret").set("agreement/verdict", "{}");
  EXPECT_EQ(message_of<TransportError>([&] {
              agree(store(), 1, 2, {{"a", "1"}});
            }),
            "the store's agreement/verdict is not signed with this job's token");
  store().set("x", "a text with spaces");
  EXPECT_EQ(store().get("x"), "a text with spaces");
  memory_->set("test/y", memory_->get("test/x"));
  EXPECT_EQ(message_of<TransportError>([&] { store().get("y"); }), "the store's y is not signed with this job's token")
      << "a signed text under another key";
}

}  // namespace
}  // namespace lockstep::trainer
