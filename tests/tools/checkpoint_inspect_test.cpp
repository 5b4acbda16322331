#include <gtest/gtest.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "core/digest/digest.h"
#include "tests/tools/run_lockstep.h"

namespace lockstep {
namespace {

/// A checkpoint made from docs/checkpoint.md alone, without the code that reads it: one tensor of three bytes. With no
/// numerics version it is of format version 1.
void write_checkpoint(const TemporaryFolder& folder, const std::string& bytes, const nlohmann::json& numerics = 7) {
  const std::string header = R"({"a":{"dtype":"U8","shape":[3],"data_offsets":[0,3]}})";
  const uint64_t length = header.size();
  std::string prefix(8, '\0');
  std::memcpy(prefix.data(), &length, 8);
  folder.write("data-0000-00000-0000.safetensors", prefix + header + bytes);
  const nlohmann::json chunk = {{"offset", {0}},
                                {"size", {3}},
                                {"file", "data-0000-00000-0000.safetensors"},
                                {"tensor", "a"},
                                {"digest", digest("abc").text()}};
  const nlohmann::json tensor = {{"name", "a"}, {"dtype", "U8"}, {"shape", {3}}, {"chunks", {chunk}}};
  nlohmann::json contents = {{"format", "lockstep-checkpoint"}, {"version", 1},       {"step", 5}, {"sample", 40},
                             {"job", "[training]\n"},           {"tensors", {tensor}}};
  if (!numerics.is_null()) {
    contents["version"] = 2;
    contents["numerics_version"] = numerics;
  }
  folder.write("index.json",
               nlohmann::json({{"contents", contents}, {"digest", digest(contents.dump()).text()}}).dump());
}

TEST(CheckpointInspect, ListsTensorsAndChecksThem) {
  const TemporaryFolder folder;
  write_checkpoint(folder, "abc");
  const auto json = folder.file("out.json");
  const auto run = run_lockstep("checkpoint inspect " + folder.path() + " --json " + json);
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_EQ(run.out,
            "a                                                U8    [3] in 1 chunks\n"
            "step 5, next sample 40, by numerics version 7, 1 tensors; every digest matches\n");
  const auto result = nlohmann::json::parse(file_content(json));
  EXPECT_EQ(result.at("step"), 5);
  EXPECT_EQ(result.at("numerics_version"), 7);
  EXPECT_EQ(result.at("tensors").size(), 1U);
  EXPECT_TRUE(result.at("damage").empty());
}

TEST(CheckpointInspect, SaysThatOlderCheckpointsHaveNoNumericsVersion) {
  const TemporaryFolder folder;
  write_checkpoint(folder, "abc", nullptr);
  const auto json = folder.file("out.json");
  const auto run = run_lockstep("checkpoint inspect -q " + folder.path() + " --json " + json);
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_EQ(run.out,
            "step 5, next sample 40, by a numerics version that is not known, 1 tensors; every digest matches\n");
  EXPECT_TRUE(nlohmann::json::parse(file_content(json)).at("numerics_version").is_null());
}

TEST(CheckpointInspect, ANumericsVersionThatIsNoneIsRefused) {
  const auto error = [](const nlohmann::json& numerics) {
    const TemporaryFolder folder;
    write_checkpoint(folder, "abc", numerics);
    const auto run = run_lockstep("checkpoint inspect " + folder.path());
    EXPECT_EQ(run.code, 5) << numerics;
    return run.err.substr(run.err.find("damaged"));
  };
  const std::string place = " expected at /contents/numerics_version.\n";
  EXPECT_EQ(error("1"), "damaged: an integer of at least 0" + place);
  EXPECT_EQ(error(-1), "damaged: an integer of at least 0" + place);
  EXPECT_EQ(error(1.5), "damaged: an integer of at least 0" + place);
  EXPECT_EQ(error(1'000'000), "damaged: a version of at most 999999" + place);
}

TEST(CheckpointInspect, DamageIsExitFive) {
  const TemporaryFolder folder;
  write_checkpoint(folder, "abd");
  const auto run = run_lockstep("checkpoint inspect -q " + folder.path());
  EXPECT_EQ(run.code, 5);
  EXPECT_EQ(run.out, "");
  EXPECT_EQ(run.err, "lockstep: " + folder.file("data-0000-00000-0000.safetensors") +
                         ": damaged: a of a does not match its digest. 1 chunks are damaged.\n");
}

}  // namespace
}  // namespace lockstep
