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

std::string largest(const char* mesh, int64_t batch, int64_t ranks) {
  const auto found = largest_mesh(parse_mesh(mesh), batch, ranks);
  return found ? found->text() : "none";
}

TEST(LargestMesh, IsTheMeshItselfWhereItFits) {
  for (const int64_t ranks : {8, 9, 100})
    EXPECT_EQ(largest("dp_replicate=2,dp_shard=2,tp=2", 8, ranks), "dp_replicate=2,dp_shard=2,tp=2");
}

TEST(LargestMesh, HasDataParallelDegreesThatDivideTheBatch) {
  EXPECT_EQ(largest("dp_shard=8", 24, 7), "dp_shard=6");
  EXPECT_EQ(largest("dp_shard=8", 8, 7), "dp_shard=4");
  EXPECT_EQ(largest("dp_shard=8", 7, 7), "dp_shard=7");
  EXPECT_EQ(largest("dp_shard=8", 8, 1), "one device");
  EXPECT_EQ(largest("dp_replicate=4", 4, 3), "dp_replicate=2");
}

/// What cuts a model stays: the job may not fit otherwise.
TEST(LargestMesh, KeepsPpCpAndTp) {
  EXPECT_EQ(largest("dp_shard=2,cp=2,tp=3", 2, 11), "cp=2,tp=3");
  EXPECT_EQ(largest("dp_shard=2,cp=2,tp=3", 2, 5), "none");
  EXPECT_EQ(largest("tp=2", 2, 1), "none");
  EXPECT_EQ(largest("tp=2", 2, 0), "none");
}

TEST(LargestMesh, OfTwoAsLargeTheOneThatCutsParametersFiner) {
  EXPECT_EQ(largest("dp_replicate=4,dp_shard=4", 16, 15), "dp_replicate=2,dp_shard=4");
  EXPECT_EQ(largest("dp_replicate=2,dp_shard=4", 24, 7), "dp_replicate=2,dp_shard=3");
  EXPECT_EQ(largest("dp_replicate=2,dp_shard=4", 16, 5), "dp_shard=4");
}

}  // namespace
}  // namespace lockstep::trainer
