#include "trainer/data/token_file.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "core/error.h"
#include "tests/support/token_files.h"

namespace lockstep::trainer {
namespace {

using testing::counting_ids;
using testing::llmc;
using testing::raw;
using testing::write_tokens;

template <class Failure, class Action>
std::string problem(const Action& action) {
  try {
    action();
    return "";
  } catch (const Failure& error) {
    return error.what();
  }
}

std::string refusal(const std::string& path, int64_t vocabulary = 65536) {
  return problem<BadInput>([&] { TokenFile(path, vocabulary); });
}

std::vector<int64_t> all_of(const TokenFile& file) {
  std::vector<int64_t> ids(static_cast<size_t>(file.tokens()));
  file.read(0, ids);
  return ids;
}

const std::vector<int64_t> kIds{7, 65535, 0, 256, 1};

TEST(TokenFile, ReadsEveryFormat) {
  const TemporaryFolder folder;
  const std::vector<uint16_t> narrow(kIds.begin(), kIds.end());
  const std::vector<uint32_t> wide(kIds.begin(), kIds.end());
  const TokenFile nano(folder.write("nano.bin", raw(narrow)), 65536);
  const TokenFile gpt2(folder.write("gpt2.bin", llmc(20240520, 1, 5, raw(narrow))), 65536);
  const TokenFile llama(folder.write("llama.bin", llmc(20240801, 7, 5, raw(wide))), 65536);
  const TokenFile own(write_tokens(folder, "own", narrow, {0, 3}), 65536);
  EXPECT_EQ(all_of(nano), kIds);
  EXPECT_EQ(all_of(gpt2), kIds);
  EXPECT_EQ(all_of(llama), kIds);
  EXPECT_EQ(all_of(own), kIds);
  EXPECT_EQ(std::string(nano.format().name) + gpt2.format().name + own.format().name, "nanoGPTllm.cLockstep");
  EXPECT_TRUE(nano.borders().empty());
  EXPECT_EQ(std::vector<uint64_t>(own.borders().begin(), own.borders().end()), (std::vector<uint64_t>{0, 3}));
  std::vector<int64_t> middle(2);
  llama.read(2, middle);
  EXPECT_EQ(middle, (std::vector<int64_t>{0, 256}));
}

TEST(TokenFile, IdsOf32BitsOfASidecarMayBeAbove65535) {
  const TemporaryFolder folder;
  const auto content = raw(std::vector<uint32_t>{128000, 5});
  const auto path = folder.write("wide.bin", content);
  write_sidecar(path, {.dtype = "uint32", .tokens = 2, .vocabulary = 128256, .data_digest = data_digest(path)});
  EXPECT_EQ(all_of(TokenFile(path, 128256)), (std::vector<int64_t>{128000, 5}));
}

/// Pairs of bytes of which some are no text, and few that are.
TEST(TokenFile, IdsAreNotTakenForText) {
  const TemporaryFolder folder;
  const auto read = [&](const std::vector<uint16_t>& ids) {
    return all_of(TokenFile(folder.write("a.bin", raw(ids)), 65536)).size();
  };
  EXPECT_EQ(read(counting_ids(39, 3000)), 39U) << "vertical tabs and bytes that follow none";
  EXPECT_EQ(read({35615, 7, 1}), 3U) << "begins as gzip's files do, but for deflate";
  EXPECT_EQ(read({0x6261, 0x6463}), 2U);
  EXPECT_EQ(read({0x6261, 0x6463, 0x6665, 0x8080, 0x6867}), 5U) << "bytes that follow none";
  EXPECT_EQ(read({0x6261, 0x6463, 0x6665, 0xc3c3, 0x6867}), 5U) << "a character that does not end";
}

TEST(TokenFile, WhatAFileIsNotIsBadInput) {
  const TemporaryFolder folder;
  const auto ids = raw(counting_ids(5, 1));
  const auto in = [&](const std::string& content) { return folder.write("a.bin", content); };
  const auto name = "dataset " + folder.file("a.bin") + ": ";
  EXPECT_EQ(refusal(folder.file("a.bin")), name + "cannot be opened: No such file or directory.");
  EXPECT_EQ(refusal(in("")), name + "is empty.");
  const auto not_ids = [&](const std::string& kind) {
    return name + "is " + kind + ", not ids of tokens. Make them of its documents: lockstep data prepare " +
           folder.file("a.bin") +
           " --tokenizer TOKENIZER --output NAME; if they are ids all the same, say so: lockstep data adopt --dtype "
           "uint16.";
  };
  EXPECT_EQ(refusal(in("the cat sat on the mat\n")), not_ids("text"));
  EXPECT_EQ(refusal(in("{\"text\": \"Gr\u00fc\u00dfe \u732b\"}")), not_ids("text"));
  EXPECT_EQ(refusal(in("\u732b\u732b\u732b\u732b\xe7")), not_ids("text")) << "a character may be cut off";
  EXPECT_EQ(refusal(in(std::string("\x1f\x8b\x08\0ab", 6))), not_ids("gzip"));
  EXPECT_EQ(refusal(in("PAR1\x15\x04")), not_ids("Parquet"));
  EXPECT_EQ(refusal(in(ids + "x")),
            name + "11 bytes are no multiple of 2, the bytes of an id of a file without a sidecar.");
  EXPECT_EQ(refusal(in(llmc(20240520, 2, 5, ids))),
            name + "is llm.c's with magic 20240520 and version 2; version 1 was expected.");
  EXPECT_EQ(refusal(in(llmc(20240520, 1, 6, ids))),
            name + "its header tells 6 tokens, which take 1036 bytes; the file has 1034.");
  EXPECT_EQ(refusal(in(llmc(20240520, 1, -1, ""))),
            name + "its header tells -1 tokens, which take 1022 bytes; the file has 1024.");
  EXPECT_EQ(refusal(in(llmc(20240520, 1, 5, ids).substr(0, 100))),
            name + "begins as llm.c's files do and has 100 bytes, less than their header of 1024.");
  EXPECT_EQ(refusal(in(raw(std::vector<uint32_t>{1, 2, 3}))),
            name +
                "every second 16-bit number is 0: these are ids of 32 bits, and nothing says so. Say it with "
                "lockstep data adopt --dtype uint32.");
}

TEST(TokenFile, AnIdOutsideTheVocabularyIsNamedWithItsPosition) {
  const TemporaryFolder folder;
  const auto path = folder.write("a.bin", raw(counting_ids(100)));
  EXPECT_EQ(refusal(path, 100), "");
  EXPECT_EQ(refusal(path, 57), "dataset " + path + ": token 57 is id 57, outside the model's vocabulary of 57.");
  const auto own = write_tokens(folder, "own", counting_ids(10), {}, 300);
  EXPECT_EQ(refusal(own, 256), "dataset " + own +
                                   ": has a vocabulary of 300 (bytes), more than the model's 256. Set "
                                   "model.vocabulary 300.");
}

TEST(TokenFile, ASidecarThatDoesNotFitIsBadInput) {
  const TemporaryFolder folder;
  const auto path = write_tokens(folder, "a", counting_ids(10), {0, 4});
  const auto name = "dataset " + path + ": ";
  auto sidecar = *read_sidecar(path);
  EXPECT_EQ(refusal(path), "");
  folder.write("a.bin", raw(counting_ids(9)));
  EXPECT_EQ(refusal(path), name + "has 9 tokens of uint16, its sidecar tells 10. Prepare it again.");
  folder.write("a.bin", raw(counting_ids(10, 1)));
  EXPECT_EQ(refusal(path), name + "is not the file that its sidecar is of: data digest " + data_digest(path) + ", " +
                               sidecar.data_digest + " was expected.");
  folder.write("a.bin", raw(counting_ids(10)));
  folder.write("a.json", "{\"format\": 1}");
  EXPECT_NE(refusal(path).find("its sidecar " + folder.file("a.json")), std::string::npos) << refusal(path);
  sidecar.dtype = "uint8";
  write_sidecar(path, sidecar);
  EXPECT_NE(refusal(path).find("uint16 or uint32"), std::string::npos) << refusal(path);
}

TEST(TokenFile, BordersThatDoNotFitAreBadInput) {
  const TemporaryFolder folder;
  const auto path = write_tokens(folder, "a", counting_ids(10), {0, 4});
  const auto with = [&](const std::vector<uint64_t>& borders) {
    write_tokens(folder, "a", counting_ids(10), borders);
    return refusal(path);
  };
  const auto name = "dataset " + path + ": " + folder.file("a.borders") + ": document ";
  const std::string rule = "; they begin at 0, ascend, and end before token 10.";
  EXPECT_EQ(with({0, 9}), "");
  EXPECT_EQ(with({1, 9}), name + "0 begins at token 1" + rule);
  EXPECT_EQ(with({0, 4, 4}), name + "2 begins at token 4" + rule);
  EXPECT_EQ(with({0, 10}), name + "1 begins at token 10" + rule);
  with({0, 4});
  folder.write("a.borders", raw(std::vector<uint64_t>{0, 5}));
  EXPECT_NE(refusal(path).find("is not the file that the sidecar is of"), std::string::npos);
  folder.write("a.borders", raw(std::vector<uint64_t>{0}));
  EXPECT_NE(refusal(path).find("has 8 bytes; the sidecar's 2 documents take 16."), std::string::npos);
  std::filesystem::remove(folder.file("a.borders"));
  EXPECT_NE(refusal(path).find("its document borders"), std::string::npos);
}

TEST(TokenFile, AFileThatChangesIsAFileError) {
  const TemporaryFolder folder;
  const auto path = folder.write("a.bin", raw(counting_ids(100)));
  const TokenFile file(path, 65536);
  std::vector<int64_t> ids(100);
  EXPECT_NO_THROW(file.read(0, ids));
  std::filesystem::last_write_time(path, std::filesystem::file_time_type::clock::now() + std::chrono::seconds(9));
  EXPECT_EQ(problem<FileError>([&] { file.read(0, ids); }), path + ": changed while it was in use: it was written to.");
  std::filesystem::resize_file(path, 6);
  EXPECT_EQ(problem<FileError>([&] { file.read(0, ids); }),
            path + ": changed while it was in use: it had 200 bytes, now 6.");
}

}  // namespace
}  // namespace lockstep::trainer
