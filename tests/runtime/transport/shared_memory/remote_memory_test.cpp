#include "runtime/transport/shared_memory/remote_memory.h"

#include <gtest/gtest.h>

#include <memory>

namespace lockstep {
namespace {

/// What the other reads to find out whose memory it is: a word that nobody has by chance.
TEST(RemoteMemory, PublishesAProbeOfItsOwn) {
  const auto memory = std::make_unique<PairMemory>();
  const RemoteMemory first(*memory, 0, nullptr), second(*memory, 1, nullptr);
  for (const auto& side : memory->sides) {
    const uint64_t word = side.probe_value, address = side.probe_address;
    EXPECT_NE(word, 0u);
    EXPECT_EQ(*reinterpret_cast<const uint64_t*>(address), word);
  }
  EXPECT_NE(uint64_t{memory->sides[0].probe_value}, uint64_t{memory->sides[1].probe_value});
}

TEST(RemoteMemory, IsFetchedWhereTheProbeIsRead) {
  const auto memory = std::make_unique<PairMemory>();
  RemoteMemory first(*memory, 0, nullptr), second(*memory, 1, nullptr);
  second.try_probe();
  EXPECT_TRUE(second.can_fetch());
  memory->sides[1].probe_value = 7;
  first.try_probe();
  EXPECT_FALSE(first.can_fetch()) << "somebody else bears the other's number";
}

}  // namespace
}  // namespace lockstep
