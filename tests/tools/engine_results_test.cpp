// The JSON of `lockstep rules` and `lockstep bench`: stable, so that other programs may read it.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/tools/run_lockstep.h"

namespace lockstep {
namespace {

/// The rows by name; a failed run leaves none.
std::map<std::string, nlohmann::json> rows_of(const std::string& command, const std::string& key) {
  const TemporaryFolder folder;
  const auto run = run_lockstep(command + " --json " + folder.file("result.json"));
  EXPECT_EQ(run.code, 0) << run.err;
  std::map<std::string, nlohmann::json> rows;
  if (run.code != 0) return rows;
  const auto result = nlohmann::json::parse(file_content(folder.file("result.json")));
  for (const auto& row : result.at("rows")) {
    EXPECT_NE(run.out.find(row.at(key).get<std::string>()), std::string::npos) << row;
    rows[row.at(key).get<std::string>()] = row;
  }
  return rows;
}

TEST(Rules, ListsRowsAndWhatFollowsFromThem) {
  const auto rows = rows_of("rules", "op");
  ASSERT_TRUE(rows.contains("mm") && rows.contains("add_.Tensor"));
  EXPECT_EQ(rows.at("mm").at("family"), "matmul");
  EXPECT_EQ(rows.at("mm").at("dims"), "mk,kn->mn");
  EXPECT_TRUE(rows.at("mm").at("derived_from").is_null());
  EXPECT_EQ(rows.at("add_.Tensor").at("derived_from"), "add.Tensor");
  EXPECT_EQ(rows.at("add_.Tensor").at("dims"), rows.at("add.Tensor").at("dims"));
  for (const auto& [op, row] : rows) EXPECT_GE(row.at("checked").get<int64_t>(), 0) << op;
}

TEST(Bench, DispatchHasItsRows) {
  const auto rows = rows_of("bench dispatch", "name");
  for (const char* name : {"add", "mm", "view", "add_four_ranks", "add_new_shape"}) {
    ASSERT_TRUE(rows.contains(name)) << name;
    const auto& row = rows.at(name);
    EXPECT_EQ(row.at("unit"), "ns");
    EXPECT_FALSE(row.at("peer_name").get<std::string>().empty());
    EXPECT_GT(row.at("ours").get<double>(), 0);
    EXPECT_GT(row.at("peer").get<double>(), 0);
    EXPECT_LE(row.at("ratio").get<double>(), row.at("ratio_upper").get<double>());
  }
}

}  // namespace
}  // namespace lockstep
