#include "replay/format/payload_mode.h"

#include <gtest/gtest.h>

namespace lockstep::replay {
namespace {

TEST(PayloadMode, IsAllNoneOrARing) {
  EXPECT_TRUE(parse_payload_mode("all").is_kept);
  EXPECT_EQ(parse_payload_mode("all").ring, 0);
  EXPECT_FALSE(parse_payload_mode("none").is_kept);
  EXPECT_TRUE(parse_payload_mode("ring:8").is_kept);
  EXPECT_EQ(parse_payload_mode("ring:8").ring, 8);
  EXPECT_EQ(parse_payload_mode("ring:1000000").ring, 1000000);
}

TEST(PayloadMode, IsNothingElse) {
  for (const char* text : {"", "some", "ring", "ring:", "ring:0", "ring:-1", "ring:8 ", "ring:8x", "ring: 8", "ring:x",
                           "ring:1000001", "ring:99999999999999999999"})
    EXPECT_FALSE(is_payload_mode(text)) << text;
}

}  // namespace
}  // namespace lockstep::replay
