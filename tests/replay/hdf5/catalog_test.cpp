// The reader's answer, as if the reader had been taken over: nothing in it is believed.
#include "replay/hdf5/catalog.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "replay/format/datasets.h"
#include "replay/hdf5/catalog_hdf5.h"
#include "replay/hdf5/hdf5.h"
#include "replay/store/recording_file.h"
#include "tests/support/recorded_steps.h"

namespace lockstep::replay {
namespace {

using lockstep::testing::message_of;

/// A recording with something in every dataset.
StepRecording full_recording() {
  StepRecording recording;
  recording.names = {"", "linear"};
  recording.ops = {{{1, 0, 0, 1, 0}, 5, 9}};
  recording.machine = {{"threads", "1"}};
  lockstep::testing::add_payload(recording, 12'345);
  recording.has_state = true;
  recording.state = {{"weight", 6, {2}, Bytes(8)}};
  return recording;
}

class CatalogTest : public ::testing::Test {
 protected:
  CatalogTest() : file_(to_file(full_recording())), catalog_(read()) {}

  Catalog read() const {
    const hdf5::Session session;
    return read_catalog(file_);
  }

  /// What is said of the catalog after a change of one entry.
  std::string refusal_after(std::size_t entry, const std::function<void(CatalogEntry&)>& change) const {
    auto wrong = catalog_;
    change(wrong.entries[entry]);
    return message_of<FileError>([&] { assemble(wrong, file_); });
  }

  Bytes file_;
  Catalog catalog_;
};

TEST_F(CatalogTest, GoesThereAndBack) {
  EXPECT_EQ(catalog_.entries.size(), kDatasets.size() + 1);
  EXPECT_TRUE(decode_catalog(encode(catalog_)) == catalog_);
  EXPECT_TRUE(assemble(catalog_, file_) == full_recording());
}

TEST_F(CatalogTest, PlacesOutsideOfTheFile) {
  const std::string behind = " has more bytes than the file, or lies behind its end";
  EXPECT_EQ(refusal_after(kPayload, [&](auto& e) { e.offset = file_.size() - 12'344; }), "/payload" + behind);
  EXPECT_EQ(refusal_after(kPayload, [&](auto& e) { e.offset = ~uint64_t{0} - 100; }), "/payload" + behind);
  EXPECT_EQ(refusal_after(kPayload, [&](auto& e) { e.sizes = {file_.size() + 1}; }), "/payload" + behind);
  EXPECT_EQ(refusal_after(kTokens,
                          [&](auto& e) {
                            e.sizes = {uint64_t{1} << 33, uint64_t{1} << 33};
                          }),
            "/batch/tokens" + behind);
}

TEST_F(CatalogTest, TheSameBytesManyTimes) {
  auto wrong = catalog_;
  for (int i = 0; i < 1000; ++i) wrong.entries.push_back({"/state/x" + std::to_string(i), "uint8", 1, {10'000}, 0});
  EXPECT_EQ(message_of<FileError>([&] { assemble(wrong, file_); }), "the datasets have more bytes than the file");
}

TEST_F(CatalogTest, OtherDatasets) {
  EXPECT_EQ(refusal_after(kOpTable, [](auto& e) { e.path = "/opts"; }), "/opts stands where /ops is due");
  EXPECT_EQ(refusal_after(kOpTable, [](auto& e) { e.sizes = {1, 1}; }), "/ops has 2 dimensions");
  EXPECT_EQ(refusal_after(kOpTable, [](auto& e) { e.element_size = 32; }), "/ops has elements of 32 bytes");
  EXPECT_EQ(refusal_after(kNameTable, [](auto& e) { e.element_size = 0; }), "/names has elements of 0 bytes");
  EXPECT_EQ(refusal_after(kMachine, [](auto& e) { e.offset += 1, e.element_size -= 3; }),
            "a string has no end: hreads = 1");
  const auto tensor = kDatasets.size();
  EXPECT_EQ(refusal_after(tensor, [](auto& e) { e.dtype = "float64"; }), "/state/weight has dtype 'float64'");
  EXPECT_EQ(refusal_after(tensor, [](auto& e) { e.path = "/weight"; }), "/weight does not belong here");
  auto wrong = catalog_;
  wrong.entries.resize(3);
  EXPECT_EQ(message_of<FileError>([&] { assemble(wrong, file_); }), "datasets are missing");
}

TEST_F(CatalogTest, AnswersThatAreNoCatalog) {
  const auto refusal_of = [](const std::string& text) { return message_of<FileError>([&] { decode_catalog(text); }); };
  auto text = encode(catalog_);
  EXPECT_EQ(refusal_of(text + "x"), "the reader's answer goes on behind its end");
  for (std::size_t size = 0; size < text.size(); ++size)
    EXPECT_EQ(refusal_of(text.substr(0, size)), "the reader's answer is cut off") << size;
  const uint64_t many = ~uint64_t{0} / 8;
  std::memcpy(text.data() + 8 * sizeof(uint64_t), &many, sizeof(many));
  EXPECT_EQ(refusal_of(text), "the reader's answer is cut off");
}

/// Its size stands in the file three times: twice in the dataspace, then where it is stored.
TEST_F(CatalogTest, ADatasetThatIsNotStoredWhole) {
  const uint64_t size = 12'345, less = 12'344;
  std::string text(reinterpret_cast<const char*>(file_.data()), file_.size());
  const auto place = text.rfind(std::string(reinterpret_cast<const char*>(&size), sizeof(size)));
  ASSERT_NE(place, text.npos);
  std::memcpy(file_.data() + place, &less, sizeof(less));
  EXPECT_EQ(message_of<FileError>([&] { from_file(file_, "x.h5"); }), "x.h5: /payload is not stored whole");
}

}  // namespace
}  // namespace lockstep::replay
