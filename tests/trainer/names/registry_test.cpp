#include "trainer/names/registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/message_of.h"
#include "trainer/job/offered_names.h"

namespace lockstep::trainer {
namespace {

using testing::message_of;

constexpr Choice kFruits[] = {{"apple"}, {"banana"}, {"cherry"}};

TEST(Choices, AreReadAsASentence) {
  EXPECT_EQ(names_text(kFruits), "apple, banana or cherry");
  EXPECT_EQ(names_text(std::span(kFruits).first(2)), "apple or banana");
  EXPECT_EQ(names_text(std::span(kFruits).first(1)), "apple");
  EXPECT_TRUE(holds(kFruits, "cherry"));
  EXPECT_FALSE(holds(kFruits, "Cherry"));
}

TEST(Registry, GivesWhatANameStandsFor) {
  const Registry<int> numbers("fruit.name", kFruits, {{"banana", 2}, {"apple", 1}, {"cherry", 3}});
  EXPECT_EQ(numbers.at("apple"), 1);
  EXPECT_EQ(numbers.at("cherry"), 3);
}

TEST(Registry, AnUnknownNameGetsTheNearestAndTheList) {
  const Registry<int> numbers("fruit.name", kFruits, {{"apple", 1}, {"banana", 2}, {"cherry", 3}});
  EXPECT_EQ(message_of<BadInput>([&] { numbers.at("bananna"); }),
            "fruit.name is \"bananna\", must be apple, banana or cherry. Did you mean banana?");
  EXPECT_EQ(message_of<BadInput>([&] { numbers.at(""); }), "fruit.name is \"\", must be apple, banana or cherry.");
}

/// The names that jobs may say and those that are built cannot drift apart.
TEST(Registry, LacksNoNameAndKnowsNoOther) {
  using ::testing::HasSubstr;
  using Numbers = Registry<int>;
  EXPECT_THAT(message_of<InternalError>([] {
                Numbers("fruit.name", kFruits, {{"apple", 1}, {"banana", 2}});
              }),
              HasSubstr("fruit.name \"cherry\" is not built"));
  EXPECT_THAT(message_of<InternalError>([] {
                Numbers("fruit.name", kFruits, {{"apple", 1}, {"banana", 2}, {"cherry", 3}, {"date", 4}});
              }),
              HasSubstr("fruit.name \"date\" is not offered, or twice"));
  EXPECT_THAT(message_of<InternalError>([] {
                Numbers("fruit.name", kFruits, {{"apple", 1}, {"banana", 2}, {"cherry", 3}, {"apple", 4}});
              }),
              HasSubstr("fruit.name \"apple\" is not offered, or twice"));
}

}  // namespace
}  // namespace lockstep::trainer
