#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/numerics_version.h"
#include "tests/tools/run_lockstep.h"

namespace lockstep {
namespace {

TEST(Doctor, PrintsWhatItWritesAsJson) {
  const TemporaryFolder folder;
  const auto run = run_lockstep("doctor --json " + folder.file("doctor.json"));
  EXPECT_EQ(run.code, 0) << run.out;
  const auto json = nlohmann::json::parse(file_content(folder.file("doctor.json")));
  EXPECT_EQ(json.at("verdict"), "pass");
  EXPECT_EQ(json.at("numerics_version"), kNumericsVersion);
  EXPECT_THAT(run.out, testing::HasSubstr(fmt::format("fine    numerics      numerics version {}; round to nearest",
                                                      kNumericsVersion)));
  std::vector<std::string> names;
  for (const auto& row : json.at("rows")) {
    names.push_back(row.at("name"));
    EXPECT_THAT(run.out, testing::HasSubstr(row.at("text").get<std::string>().substr(0, 12))) << names.back();
  }
  const auto& speed = json.at("rows").at(7);
  EXPECT_GT(speed.at("operations_per_second_1_threads").get<double>(), 1e8);
  EXPECT_GT(speed.at("bytes_per_second_1_threads").get<double>(), 1e8);
  EXPECT_THAT(names, testing::ElementsAre("system", "processor", "instructions", "memory", "LibTorch", "numerics",
                                          "kernels", "speed", "CUDA", "disk", "data"));
}

}  // namespace
}  // namespace lockstep
