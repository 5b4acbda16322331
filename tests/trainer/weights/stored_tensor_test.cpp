// torch.save's archives: the numbers that are there and no others, whatever data.pkl says of them.
#include "trainer/weights/torch_checkpoint/stored_tensor.h"

#include <ATen/Functions.h>
#include <caffe2/serialize/inline_container.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/message_of.h"
#include "tests/trainer/weights/torch_folder.h"

namespace lockstep::trainer {
namespace {

using ::testing::HasSubstr;
using testing::message_of;
using testing::PickleWriter;

/// What data.pkl says of 12 float32 numbers; each test changes something.
struct Said {
  std::string storage = "FloatStorage", key = "0", call = "_rebuild_tensor_v2";
  int64_t count = 12, offset = 0;
  std::vector<int64_t> sizes = {3, 4}, strides = {4, 1};

  std::string pickle() const {
    PickleWriter out;
    out.name("torch._utils", call).raw("((").text("storage").name("torch", storage).text(key).text("cpu").number(count);
    out.raw("tQ").number(offset);
    for (const auto* numbers : {&sizes, &strides}) {
      out.raw("(");
      for (const auto number : *numbers) out.number(number);
      out.raw("t");
    }
    return out.raw("\x89").name("collections", "OrderedDict").raw(")RtR").finished();
  }
};

std::string archive(const std::string& pickle, const at::Tensor& numbers = at::arange(12, at::kFloat)) {
  std::string bytes;
  caffe2::serialize::PyTorchStreamWriter writer([&](const void* data, size_t count) {
    bytes.append(static_cast<const char*>(data), count);
    return count;
  });
  writer.writeRecord("data.pkl", pickle.data(), pickle.size());
  writer.writeRecord("data/0", numbers.const_data_ptr(), numbers.nbytes());
  writer.writeEndOfFile();
  return bytes;
}

/// As a part of a file, behind other bytes.
at::Tensor read(const std::string& bytes, const std::string& dtype = "float32", int64_t cut = 0) {
  const TemporaryFolder folder;
  const RandomAccessFile file(folder.write("part", "before" + bytes));
  return read_stored_tensor(file, 6, static_cast<int64_t>(bytes.size()) - cut, "wq", dtype, {3, 4});
}

std::string refusal_of(const std::string& bytes, const std::string& dtype = "float32", int64_t cut = 0) {
  return message_of<FileError>([&] { read(bytes, dtype, cut); });
}

TEST(StoredTensor, HasTheNumbersOfTheArchive) {
  EXPECT_TRUE(read(archive(Said().pickle())).equal(at::arange(12, at::kFloat).view({3, 4})));
  EXPECT_TRUE(read(archive(Said{.strides = {1, 3}}.pickle())).equal(at::arange(12, at::kFloat).view({4, 3}).t()));
  const auto twenty = at::arange(20, at::kFloat);
  EXPECT_TRUE(
      read(archive(Said{.count = 20, .offset = 8}.pickle(), twenty)).equal(twenty.narrow(0, 8, 12).view({3, 4})));
  const auto narrow = at::arange(12, at::kBFloat16);
  EXPECT_TRUE(
      read(archive(Said{.storage = "BFloat16Storage"}.pickle(), narrow), "bfloat16").equal(narrow.view({3, 4})));
}

TEST(StoredTensor, IsRefusedWhereItsNumbersAreNotThere) {
  constexpr int64_t kFar = int64_t{1} << 40;
  const auto untrue = HasSubstr("wq (bytes from 6 on): says of its numbers what is not so. It may be damaged.");
  EXPECT_THAT(refusal_of(archive(Said{.count = kFar}.pickle())), untrue);
  EXPECT_THAT(refusal_of(archive(Said{.count = kFar, .offset = kFar / 2}.pickle())), untrue);
  EXPECT_THAT(refusal_of(archive(Said{.count = 13}.pickle())), untrue);
  EXPECT_THAT(refusal_of(archive(Said{.offset = 1}.pickle())), untrue);
  EXPECT_THAT(refusal_of(archive(Said{.strides = {4, 2}}.pickle())), untrue);
  EXPECT_THAT(refusal_of(archive(Said{.strides = {INT64_MAX, 1}}.pickle())), untrue);
  EXPECT_THAT(refusal_of(archive(Said().pickle(), at::arange(12, at::kDouble))), untrue);
}

TEST(StoredTensor, IsRefusedWhereItIsAnother) {
  const auto other = HasSubstr("holds no tensor of the type and the sizes that .metadata gives it");
  EXPECT_THAT(refusal_of(archive(Said{.storage = "IntStorage"}.pickle())), other);
  EXPECT_THAT(refusal_of(archive(Said{.storage = "DoubleStorage"}.pickle())), other);
  EXPECT_THAT(refusal_of(archive(Said{.storage = "HalfStorage"}.pickle())), other);
  EXPECT_THAT(refusal_of(archive(Said{.sizes = {4, 3}, .strides = {3, 1}}.pickle())), other);
  EXPECT_THAT(refusal_of(archive(Said{.sizes = {12}, .strides = {1}}.pickle())), other);
  EXPECT_THAT(refusal_of(archive(Said{.strides = {-4, 1}}.pickle())), other);
  EXPECT_THAT(refusal_of(archive(Said{.call = "_rebuild_sparse_tensor"}.pickle())), other);
  EXPECT_THAT(refusal_of(archive("cos\nsystem\n(tR.")), other);
  EXPECT_THAT(refusal_of(archive(")" + std::string(200'000, '\x85') + ".")), other)
      << "nested as deep as nobody may go";
}

TEST(StoredTensor, IsRefusedWhereTheArchiveIsNotWhole) {
  const auto whole = archive(Said().pickle());
  EXPECT_THAT(refusal_of(archive(Said{.key = "7"}.pickle())), HasSubstr("has no data/7"));
  EXPECT_THAT(refusal_of("no archive"), HasSubstr("cannot be read"));
  EXPECT_THAT(refusal_of(whole, "float32", -1), HasSubstr("It is cut short."));
  for (const int64_t cut : {1, 20, 100, 400}) EXPECT_NE(refusal_of(whole, "float32", cut), "no such error") << cut;
}

}  // namespace
}  // namespace lockstep::trainer
