#include "trainer/checkpoint/checkpoint_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <numeric>

#include "core/digest/digest.h"
#include "core/error.h"
#include "tests/support/temporary_folder.h"
#include "trainer/checkpoint/copy_overlap.h"

namespace lockstep::trainer {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

/// A 4 x 6 tensor of its own indices, cut in four, and a whole one of 5 bytes.
struct Saved {
  std::vector<int32_t> cells = std::vector<int32_t>(24);
  std::vector<std::vector<int32_t>> quarters;
  std::vector<std::byte> plain = std::vector<std::byte>(5, std::byte{9});
  CheckpointMetadata metadata{10, 80, "[training]\nsteps = 20\n"};
  std::vector<ChunkToSave> chunks;

  Saved() {
    std::iota(cells.begin(), cells.end(), 0);
    const auto whole = Box::whole({4, 6});
    for (const auto& box : {Box{{0, 0}, {1, 6}}, Box{{1, 0}, {3, 2}}, Box{{1, 2}, {3, 4}}, Box{{4, 0}, {0, 6}}}) {
      auto& quarter = quarters.emplace_back(static_cast<size_t>(box.elements()));
      copy_overlap(whole, std::as_bytes(std::span(cells)), box, std::as_writable_bytes(std::span(quarter)), 4);
      chunks.push_back({"cells", "I32", {4, 6}, box, {}});
    }
    for (size_t i = 0; i < quarters.size(); ++i) chunks[i].bytes = std::as_bytes(std::span(quarters[i]));
    chunks.push_back({"plain", "U8", {5}, Box::whole({5}), plain});
  }
};

std::vector<int32_t> as_cells(const std::vector<std::byte>& bytes) {
  std::vector<int32_t> cells(bytes.size() / 4);
  std::memcpy(cells.data(), bytes.data(), bytes.size());
  return cells;
}

std::string problem(const std::string& folder) {
  try {
    const Checkpoint checkpoint(folder);
    for (const auto& [name, tensor] : checkpoint.tensors()) checkpoint.read(name);
    return "";
  } catch (const FileError& error) {
    return error.what();
  }
}

std::string data_file(const std::string& folder) {
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.path().extension() == ".safetensors") return entry.path();
  return "";
}

TEST(Checkpoint, ReadsBackWhateverTheCut) {
  const TemporaryFolder folder;
  const Saved saved;
  save_checkpoint(folder.file("step-10"), saved.metadata, saved.chunks);
  const Checkpoint checkpoint(folder.file("step-10"));
  EXPECT_EQ(checkpoint.metadata(), saved.metadata);
  EXPECT_EQ(as_cells(checkpoint.read("cells")), saved.cells);
  EXPECT_EQ(as_cells(checkpoint.read("cells", {{0, 1}, {3, 2}})), (std::vector<int32_t>{1, 2, 7, 8, 13, 14}));
  EXPECT_EQ(checkpoint.read("plain"), saved.plain);
  EXPECT_TRUE(checkpoint.damage().empty());
  EXPECT_THROW(checkpoint.read("other"), FileError);
}

TEST(Checkpoint, ProcessesWriteFilesOfTheirOwn) {
  const TemporaryFolder folder;
  const Saved saved;
  const auto path = folder.file("step-10");
  const std::span<const ChunkToSave> chunks = saved.chunks;
  const std::vector<CheckpointIndex> written = {write_chunks(path, 0, 0, chunks.first(2)),
                                                write_chunks(path, 0, 1, chunks.subspan(2))};
  EXPECT_EQ(problem(path), path + ": incomplete checkpoint: it has no index.json.");
  commit_checkpoint(path, saved.metadata, written);
  EXPECT_EQ(as_cells(Checkpoint(path).read("cells")), saved.cells);
}

TEST(Checkpoint, AnIncompleteSetOfChunksIsNotCommitted) {
  const TemporaryFolder folder;
  const Saved saved;
  const auto path = folder.file("step-10");
  save_checkpoint(path, saved.metadata, saved.chunks);
  const auto part = write_chunks(path, next_attempt(path), 0, std::span(saved.chunks).first(2));
  EXPECT_THROW(commit_checkpoint(path, {11, 88, ""}, {&part, 1}), FileError);
  EXPECT_EQ(Checkpoint(path).metadata().step, 10) << "the older one survives";
  EXPECT_EQ(problem(path), "");
}

TEST(Checkpoint, SavingAgainReplacesAndCleansUp) {
  const TemporaryFolder folder;
  const Saved saved;
  const auto path = folder.file("step-10");
  save_checkpoint(path, saved.metadata, saved.chunks);
  const auto first = data_file(path);
  save_checkpoint(path, {10, 90, "new"}, saved.chunks);
  EXPECT_EQ(Checkpoint(path).metadata().sample, 90);
  EXPECT_FALSE(fs::exists(first));
  EXPECT_EQ(problem(path), "");
}

TEST(Checkpoint, SavingAgainRemovesWhatCrashesLeftAndNothingElse) {
  const TemporaryFolder folder;
  const Saved saved;
  const auto path = folder.file("step-10");
  fs::create_directory(path);
  const std::vector<std::string> left = {"data-0007-00001-0000.safetensors", "index.json.partial-77",
                                         "data-0008-00000-0000.safetensors.partial-77"};
  const std::vector<std::string> foreign = {"data-set.txt", "index.json.partial", "x.partial-77", "notes.txt"};
  for (const auto& names : {left, foreign})
    for (const auto& name : names) folder.write("step-10/" + name, "");
  save_checkpoint(path, saved.metadata, saved.chunks);
  for (const auto& name : left) EXPECT_FALSE(fs::exists(fs::path(path) / name)) << name;
  for (const auto& name : foreign) EXPECT_TRUE(fs::exists(fs::path(path) / name)) << name;
  EXPECT_TRUE(fs::exists(path + "/data-0009-00000-0000.safetensors"));
}

TEST(Checkpoint, AFolderIsNotSavedUnderAnotherStepsName) {
  const TemporaryFolder folder;
  const Saved saved;
  const auto path = folder.file("step-11");
  EXPECT_THROW(save_checkpoint(path, saved.metadata, saved.chunks), FileError);
  EXPECT_FALSE(fs::exists(path + "/index.json"));
}

TEST(Checkpoint, TruncationNamesTheFileAndWhatIsLeft) {
  const TemporaryFolder folder;
  const Saved saved;
  const auto path = folder.file("step-10");
  const std::span<const ChunkToSave> chunks = saved.chunks;
  const std::vector<CheckpointIndex> written = {write_chunks(path, 0, 0, chunks.first(4)),
                                                write_chunks(path, 0, 1, chunks.subspan(4))};
  commit_checkpoint(path, saved.metadata, written);
  const auto file = path + "/data-0000-00000-0000.safetensors";
  fs::resize_file(file, fs::file_size(file) - 4);
  EXPECT_EQ(problem(path), file +
                               ": truncated: 92 bytes of tensors, the header describes 96. 1 of 2 files are damaged; 1 "
                               "of 2 tensors of step 10 can be read.");
  fs::remove(file);
  EXPECT_EQ(problem(path),
            file +
                ": cannot be opened: No such file or directory. 1 of 2 files are damaged; 1 of 2 tensors "
                "of step 10 can be read.");
}

TEST(Checkpoint, AFlippedTensorByteIsFoundByItsDigest) {
  const TemporaryFolder folder;
  const Saved saved;
  save_checkpoint(folder.file("c"), saved.metadata, saved.chunks);
  const auto file = data_file(folder.file("c"));
  auto content = file_content(file);
  content.back() = static_cast<char>(content.back() ^ 1);  // the last byte of "plain"
  folder.write("c/" + fs::path(file).filename().string(), content);
  const Checkpoint checkpoint(folder.file("c"));
  EXPECT_EQ(as_cells(checkpoint.read("cells")), saved.cells) << "what is whole stays readable";
  EXPECT_THAT(checkpoint.damage(), testing::ElementsAre(file + ": damaged: plain of plain does not match its digest."));
}

TEST(Checkpoint, AFileOfAnotherCheckpointIsRefused) {
  const TemporaryFolder folder;
  const std::vector<std::byte> bytes(6);
  save_checkpoint(folder.file("a"), {}, std::vector<ChunkToSave>{{"w", "U8", {2, 3}, Box::whole({2, 3}), bytes}});
  save_checkpoint(folder.file("b"), {}, std::vector<ChunkToSave>{{"w", "U8", {3, 2}, Box::whole({3, 2}), bytes}});
  const auto file = data_file(folder.file("a"));
  fs::copy_file(data_file(folder.file("b")), file, fs::copy_options::overwrite_existing);
  EXPECT_EQ(problem(folder.file("a")), file + ": damaged: it does not hold w as the index describes it.");
}

/// Reading a damaged checkpoint must fail as a FileError or give exactly what was saved.
void expect_noticed_or_harmless(const std::string& folder, const Saved& saved, const std::string& what) {
  try {
    const Checkpoint checkpoint(folder);
    EXPECT_EQ(checkpoint.metadata(), saved.metadata) << what;
    EXPECT_EQ(as_cells(checkpoint.read("cells")), saved.cells) << what;
    EXPECT_EQ(checkpoint.read("plain"), saved.plain) << what;
  } catch (const FileError&) {
  }
}

TEST(Checkpoint, NoByteCanBeChangedCutOrAddedUnnoticed) {
  const TemporaryFolder folder;
  const Saved saved;
  const auto path = folder.file("c");
  save_checkpoint(path, saved.metadata, saved.chunks);
  for (const auto& file : {path + "/index.json", data_file(path)}) {
    const auto name = "c/" + fs::path(file).filename().string();
    const auto content = file_content(file);
    for (size_t i = 0; i < content.size(); ++i) {
      auto damaged = content;
      damaged[i] = static_cast<char>(damaged[i] ^ (1 << i * 5 % 8));
      folder.write(name, damaged);
      expect_noticed_or_harmless(path, saved, fmt::format("{} byte {}", name, i));
      if (i % 11 != 5 || (i + 1 == content.size() && content.back() == '\n')) continue;  // which ends a text, or not
      folder.write(name, content.substr(0, i));
      EXPECT_NE(problem(path), "") << name << " cut to " << i << " of " << content.size();
      folder.write(name, content.substr(0, i) + content.substr(i / 2));
      EXPECT_NE(problem(path), "") << name << " doubled at " << i;
    }
    folder.write(name, content);
    ASSERT_EQ(problem(path), "");
  }
}

TEST(ParseIndex, RefusesWhatTheFormatDoesNotAllow) {
  const auto message = [](auto change) {
    CheckpointIndex index{{1, 2, ""}, {{"a", {"U8", {4}, {{{{0}, {4}}, "f", "a", "d"}}}}}};
    change(index.tensors.at("a"));
    try {
      parse_index(index_text(index), "i");
      return std::string();
    } catch (const FileError& error) {
      return std::string(error.what());
    }
  };
  EXPECT_EQ(message([](TensorRecord&) {}), "");
  EXPECT_THAT(message([](TensorRecord& a) { a.chunks[0].file = "../f"; }), HasSubstr("a plain file name expected at"));
  EXPECT_THAT(message([](TensorRecord& a) { a.chunks[0].file = "x/f"; }), HasSubstr("a plain file name expected at"));
  EXPECT_THAT(message([](TensorRecord& a) { a.chunks[0].file = ""; }), HasSubstr("a plain file name expected at"));
  EXPECT_THAT(message([](TensorRecord& a) { a.chunks[0].box.size = {5}; }), HasSubstr("a chunk inside the tensor"));
  EXPECT_THAT(message([](TensorRecord& a) { a.chunks[0].box.size = {3}; }), HasSubstr("chunks that cover the tensor"));
  EXPECT_THAT(message([](TensorRecord& a) { a.chunks.push_back(a.chunks[0]); }), HasSubstr("do not overlap"));
  EXPECT_THAT(message([](TensorRecord& a) { a.dtype = "U9"; }), HasSubstr("a known type"));
  EXPECT_THAT(message([](TensorRecord& a) { a.chunks.clear(); }), HasSubstr("chunks that cover the tensor"));
}

TEST(ParseIndex, KeepsTheRun) {
  const CheckpointMetadata metadata{
      1, 2, "", 1, {"a run", "its data", {{"the first", 3}, {"the second", 5}}}, "0x1.8p-10", "00ff"};
  EXPECT_EQ(parse_index(index_text({metadata, {}}), "i").metadata, metadata);
}

TEST(ParseIndex, KeepsTheNumericsVersion) {
  const auto read = [](std::optional<int64_t> version) {
    return parse_index(index_text({{1, 2, "", version}, {}}), "i").metadata.numerics_version;
  };
  EXPECT_EQ(CheckpointMetadata().numerics_version, kNumericsVersion) << "what is saved is of this build";
  EXPECT_EQ(read(kNumericsVersion), kNumericsVersion);
  EXPECT_EQ(read(0), 0);
  EXPECT_EQ(read(std::nullopt), std::nullopt) << "an older checkpoint";
}

/// The text of an index after a change of its contents, with the digest that belongs to it.
std::string changed_index(const std::function<void(nlohmann::json&)>& change) {
  auto contents = nlohmann::json::parse(index_text({{1, 2, ""}, {}})).at("contents");
  change(contents);
  return nlohmann::json({{"contents", contents}, {"digest", digest(contents.dump()).text()}}).dump();
}

TEST(ParseIndex, HasANumericsVersionFromFormatVersion2On) {
  const auto message = [](const std::function<void(nlohmann::json&)>& change) {
    try {
      parse_index(changed_index(change), "i");
      return std::string();
    } catch (const FileError& error) {
      return std::string(error.what());
    }
  };
  EXPECT_EQ(message([](auto&) {}), "");
  EXPECT_EQ(message([](auto& contents) { contents.erase("numerics_version"); }),
            "i: damaged: the key \"numerics_version\" expected at /contents.");
  EXPECT_EQ(message([](auto& contents) { contents["version"] = 1; }),
            "i: damaged: 6 keys, not 10, expected at /contents.");
  EXPECT_EQ(message([](auto& contents) { contents["version"] = 4; }),
            "i: has format version 4; this build reads versions 1 to 3.");
}

}  // namespace
}  // namespace lockstep::trainer
