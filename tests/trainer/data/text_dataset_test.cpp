#include "trainer/data/text_dataset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cmath>
#include <numeric>
#include <set>

#include "core/error.h"
#include "tests/support/temporary_folder.h"
#include "trainer/job/job.h"
#include "trainer/job/offered_names.h"

namespace lockstep::trainer {
namespace {

template <class Failure, class Action>
std::string problem(const Action& action) {
  try {
    action();
    return "";
  } catch (const Failure& error) {
    return error.what();
  }
}

/// 256 x 40 bytes: byte i is i modulo 251, so that every position is known from its value and neighbours.
std::string counting_text(size_t size) {
  std::string text(size, '\0');
  for (size_t i = 0; i < size; ++i) text[i] = static_cast<char>(i % 251);
  return text;
}

TEST(TextDataset, SamplesShareOneByteWithTheirNeighbour) {
  const TemporaryFolder folder;
  const auto path = folder.write("text", counting_text(1000));
  const TextDataset data(path, 10, 256, 1);
  EXPECT_EQ(data.samples(), 99);
  const auto batch = data.batch(0, 99);
  for (int64_t r = 0; r < batch.rows; ++r) {
    const auto first = data.sample_at(r) * 10;
    for (int64_t t = 0; t < 10; ++t) {
      EXPECT_EQ(batch.tokens[static_cast<size_t>(r * 10 + t)], (first + t) % 251);
      EXPECT_EQ(batch.labels[static_cast<size_t>(r * 10 + t)], (first + t + 1) % 251);
    }
  }
}

TEST(TextDataset, BytesAbove127AreTokensAbove127) {
  const TemporaryFolder folder;
  const TextDataset data(folder.write("text", "\xff\x80\xc3"), 2, 256, 1);
  EXPECT_EQ(data.batch(0, 1).tokens, (std::vector<int64_t>{255, 128}));
  EXPECT_EQ(data.batch(0, 1).labels, (std::vector<int64_t>{128, 195}));
}

TEST(TextDataset, EveryEpochVisitsEachSampleOnceInAnOrderOfItsOwn) {
  const TemporaryFolder folder;
  const TextDataset data(folder.write("text", counting_text(4001)), 10, 256, 7);
  std::vector<std::vector<int64_t>> epochs(3);
  for (int64_t i = 0; i < 3 * data.samples(); ++i)
    epochs[static_cast<size_t>(i / data.samples())].push_back(data.sample_at(i));
  for (const auto& epoch : epochs) EXPECT_EQ(std::set(epoch.begin(), epoch.end()).size(), 400U);
  EXPECT_NE(epochs[0], epochs[1]);
  EXPECT_NE(epochs[1], epochs[2]);
}

TEST(TextDataset, OrderDependsOnTheSeedAlone) {
  const TemporaryFolder folder;
  const auto path = folder.write("text", counting_text(4001));
  const TextDataset data(path, 10, 256, 7), same(path, 10, 256, 7), other(path, 10, 256, 8);
  const auto whole = data.batch(395, 10);
  EXPECT_EQ(whole.tokens, same.batch(395, 10).tokens);
  EXPECT_NE(whole.tokens, other.batch(395, 10).tokens);
  const auto part = same.batch(398, 4);  // over the end of the first epoch
  EXPECT_TRUE(std::equal(part.tokens.begin(), part.tokens.end(), whole.tokens.begin() + 30));
}

TEST(TextDataset, BadDataIsBadInput) {
  const TemporaryFolder folder;
  const auto empty = folder.write("empty", ""), small = folder.write("small", "abc");
  const auto text = folder.write("text", std::string(3 << 20, 'a') + "\xc3" + "bc");
  const auto missing = folder.file("missing"), fifo = folder.file("fifo");
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  const auto open = [](const std::string& path, int64_t seq_len, int64_t vocabulary) {
    return problem<BadInput>([&] { TextDataset(path, seq_len, vocabulary, 0); });
  };
  EXPECT_EQ(open(missing, 2, 256), "dataset " + missing + ": cannot be opened: No such file or directory.");
  EXPECT_EQ(open(folder.path(), 2, 256), "dataset " + folder.path() + ": is not a regular file.");
  EXPECT_EQ(open(fifo, 2, 256), "dataset " + fifo + ": is not a regular file.");  // nobody writes to it
  EXPECT_EQ(open(empty, 2, 256), "dataset " + empty + ": is empty.");
  EXPECT_EQ(open(small, 3, 256),
            "dataset " + small + ": 3 bytes are less than one sample of training.seq_len + 1 = 4.");
  EXPECT_EQ(open(small, 2, 256), "");
  EXPECT_EQ(open(text, 2, 128),
            "dataset " + text + ": byte 3145728 is token 195, outside the model's vocabulary of 128.");
  EXPECT_NE(open(text, 2, 195), "");
  EXPECT_EQ(open(text, 2, 196), "");
}

TEST(TextDataset, AFileThatShrinksIsAFileError) {
  const TemporaryFolder folder;
  const auto path = folder.write("text", counting_text(1000));
  const TextDataset data(path, 10, 256, 1);
  std::filesystem::resize_file(path, 0);
  EXPECT_NE(problem<FileError>([&] { data.batch(0, 1); }).find("bytes more were expected"), std::string::npos);
}

TEST(UnigramEntropy, HasItsClosedForm) {
  const TemporaryFolder folder;
  EXPECT_NEAR(unigram_entropy(folder.write("a", "aabbccdd")), std::log(4.0), 1e-15);
  EXPECT_NEAR(unigram_entropy(folder.write("b", "aaab")), -0.75 * std::log(0.75) - 0.25 * std::log(0.25), 1e-15);
  EXPECT_EQ(unigram_entropy(folder.write("c", "aaaa")), 0.0);
  const auto empty = folder.write("d", "");
  EXPECT_EQ(problem<BadInput>([&] { unigram_entropy(empty); }), "dataset " + empty + ": is empty.");
}

TEST(Dataset, IsTheOneThatTheJobNames) {
  const TemporaryFolder folder;
  Job job;
  job.training.dataset_path = {folder.write("text", counting_text(4002))};
  job.training.seq_len = 10;
  job.debug.seed = 7;
  const TextDataset expected(job.training.dataset_path[0], 10, 256, 7);
  EXPECT_EQ(make_dataset(job, 256)->batch(3, 2).tokens, expected.batch(3, 2).tokens);
  for (const auto& choice : kDatasetNames) {
    job.training.dataset = choice.name;
    if (choice.name == "conversations" || choice.name == "preferences") {
      EXPECT_THAT(
          problem<BadInput>([&] { make_dataset(job, 65536); }),
          ::testing::EndsWith(fmt::format("holds tokens without a sidecar, not {}. lockstep data prepare --chat "
                                          "makes them.",
                                          choice.name)));
      continue;
    }
    EXPECT_EQ(make_dataset(job, 65536)->samples(), choice.name == "text" ? 400 : 200) << choice.name;
  }
  job.training.dataset = "csv";
  EXPECT_EQ(problem<BadInput>([&] { make_dataset(job, 256); }),
            "training.dataset is \"csv\", must be text, tokens, conversations or preferences.");
}

TEST(Dataset, ATextIsOneFileAndOneDocument) {
  const TemporaryFolder folder;
  Job job;
  const auto path = folder.write("text", counting_text(4001));
  job.training.dataset_path = {path, path};
  EXPECT_EQ(problem<BadInput>([&] { make_dataset(job, 256); }),
            "training.dataset_path names 2 files; training.dataset \"text\" has one, \"tokens\" any number.");
  job.training.dataset_path = {path};
  job.training.pack_documents = true;
  EXPECT_EQ(problem<BadInput>([&] { make_dataset(job, 256); }),
            "training.pack_documents: a text is one document; choose training.dataset \"tokens\".");
}

}  // namespace
}  // namespace lockstep::trainer
