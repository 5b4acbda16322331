#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <nlohmann/json.hpp>

#include "core/digest/digest.h"
#include "core/sanitized.h"
#include "tests/tools/run_lockstep.h"

namespace lockstep {
namespace {

constexpr const char* kFile = "data-0000-00000-0000.safetensors";

/// A file of tensors, made from docs/checkpoint.md alone, without the code that reads it.
void write_tensors(const TemporaryFolder& folder, const std::string& header, const std::string& bytes) {
  const uint64_t length = header.size();
  std::string prefix(8, '\0');
  std::memcpy(prefix.data(), &length, 8);
  folder.write(kFile, prefix + header + bytes);
}

nlohmann::json chunk_of(const char* tensor, int64_t size, const char* bytes) {
  return {{"offset", {0}}, {"size", {size}}, {"file", kFile}, {"tensor", tensor}, {"digest", digest(bytes).text()}};
}

/// An index in the same way, of one tensor of three bytes. With no numerics version it is of format version 1.
void write_index(const TemporaryFolder& folder, const nlohmann::json& chunks, const nlohmann::json& numerics = 7) {
  const nlohmann::json tensor = {{"name", "a"}, {"dtype", "U8"}, {"shape", {3}}, {"chunks", chunks}};
  nlohmann::json contents = {{"format", "lockstep-checkpoint"}, {"version", 1},       {"step", 5}, {"sample", 40},
                             {"job", "[training]\n"},           {"tensors", {tensor}}};
  if (!numerics.is_null()) {
    contents["version"] = 2;
    contents["numerics_version"] = numerics;
  }
  folder.write("index.json",
               nlohmann::json({{"contents", contents}, {"digest", digest(contents.dump()).text()}}).dump());
}

void write_checkpoint(const TemporaryFolder& folder, const std::string& bytes, const nlohmann::json& numerics = 7) {
  write_tensors(folder, R"({"a":{"dtype":"U8","shape":[3],"data_offsets":[0,3]}})", bytes);
  write_index(folder, nlohmann::json::array({chunk_of("a", 3, "abc")}), numerics);
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

TEST(CheckpointInspect, ManyChunksTakeASecond) {
  const TemporaryFolder folder;
  write_tensors(
      folder,
      R"({"a":{"dtype":"U8","shape":[3],"data_offsets":[0,3]},"e":{"dtype":"U8","shape":[0],"data_offsets":[3,3]}})",
      "abc");
  nlohmann::json chunks(60'000, chunk_of("e", 0, ""));
  chunks.push_back(chunk_of("a", 3, "abc"));
  write_index(folder, chunks);
  const auto start = std::chrono::steady_clock::now();
  const auto run = run_lockstep("checkpoint inspect " + folder.path());
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.out, ::testing::HasSubstr("in 60001 chunks\n"));
  EXPECT_LT(took.count(), kSanitized ? 20 : 2);
}

TEST(CheckpointInspect, LoopsOfLinksAndHugeFilesAreNamed) {
  const TemporaryFolder folder;
  const auto message = [](const std::string& path, int code) {
    const auto run = run_lockstep("checkpoint inspect " + path);
    EXPECT_EQ(run.code, code) << path;
    return run.err;
  };
  std::filesystem::create_symlink("loop", folder.file("loop"));
  EXPECT_EQ(message(folder.file("loop"), 2),
            "lockstep: " + folder.file("loop") + ": no such checkpoint folder: Too many levels of symbolic links.\n");
  const auto index = folder.file("index.json");
  std::filesystem::create_symlink("index.json", index);
  EXPECT_EQ(message(folder.path(), 5),
            "lockstep: " + index + ": cannot be opened: Too many levels of symbolic links.\n");
  std::filesystem::resize_file(folder.write("index.json", ""), std::uintmax_t{1} << 40);
  EXPECT_EQ(message(folder.path(), 5),
            "lockstep: " + index + ": is of 1099511627776 bytes, 1073741824 are the most that it can be.\n");
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
