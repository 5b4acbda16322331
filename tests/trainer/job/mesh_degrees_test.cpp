// How many ranks a mesh has.
#include "trainer/job/mesh_degrees.h"

#include <gtest/gtest.h>

#include <limits>

namespace lockstep::trainer {
namespace {

TEST(MeshDegrees, CountRanks) {
  EXPECT_EQ(MeshDegrees{}.ranks(), 1);
  EXPECT_EQ((MeshDegrees{.pp = 2, .dp_replicate = 3, .dp_shard = 5, .cp = 7, .tp = 11}.ranks()), 2310);
  constexpr auto kLarge = int64_t{1} << 40;
  EXPECT_EQ((MeshDegrees{.dp_shard = kLarge, .tp = kLarge}.ranks()), std::numeric_limits<int64_t>::max());
}

}  // namespace
}  // namespace lockstep::trainer
