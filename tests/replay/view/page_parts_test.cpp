// What pages have in common: numbers as texts.
#include "replay/view/page_parts.h"

#include <gtest/gtest.h>

namespace lockstep::replay {
namespace {

TEST(PageParts, TellNumbersInFewDigits) {
  EXPECT_EQ(bytes_text(0), "0 B");
  EXPECT_EQ(bytes_text(999.6), "1 kB");
  EXPECT_EQ(bytes_text(231100), "231 kB");
  EXPECT_EQ(bytes_text(13.69e6), "13.7 MB");
  EXPECT_EQ(count_text(1865456), "1,865,456");
}

}  // namespace
}  // namespace lockstep::replay
