// A short month in which ranks are lost (`lockstep bench month`).
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/tools/run_lockstep.h"

namespace lockstep {
namespace {

TEST(Month, EndsWithTheBitsOfAnUndisturbedOne) {
  const TemporaryFolder folder;
  const auto run = run_lockstep("bench month --kills 1 -q --json " + folder.file("month.json"));
  ASSERT_EQ(run.code, 0) << run.out << run.err;
  const auto result = nlohmann::json::parse(file_content(folder.file("month.json")));
  EXPECT_TRUE(result.at("digest_equal"));
  EXPECT_EQ(result.at("restarts"), result.at("kills"));
  EXPECT_GE(result.at("kills"), 1);
  EXPECT_GT(result.at("effective"), 0.9);
  EXPECT_LT(result.at("effective"), 1.0);
}

TEST(Month, AloneHasKills) {
  const auto run = run_lockstep("bench step --kills 1");
  EXPECT_EQ(run.code, 2);
  EXPECT_EQ(run.err, "lockstep: --kills is for lockstep bench month.\n");
}

}  // namespace
}  // namespace lockstep
