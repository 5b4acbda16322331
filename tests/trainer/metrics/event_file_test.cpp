// Files of events as TensorBoard reads them: checksums by their published values, one event byte by byte, and all of a
// file by a reader of its own.
#include "trainer/metrics/event_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>

#include "core/error.h"
#include "tests/support/message_of.h"
#include "tests/support/temporary_folder.h"

namespace lockstep::trainer {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

std::string from_hex(std::string_view hex) {
  std::string bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2)
    bytes += static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16));
  return bytes;
}

/// RFC 3720, appendix B.4, and the check value of the CRC catalogue.
TEST(Crc32c, HasThePublishedValues) {
  std::string rising, falling;
  for (int i = 0; i < 32; ++i) rising += static_cast<char>(i), falling += static_cast<char>(31 - i);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8a9136aaU);
  EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62a8ab43U);
  EXPECT_EQ(crc32c(rising), 0x46dd794eU);
  EXPECT_EQ(crc32c(falling), 0x113fdb5cU);
  EXPECT_EQ(crc32c("123456789"), 0xe3069283U);
}

/// The bytes of a record, without what is around them. REQUIRES: it is whole.
std::string next_record(const std::string& bytes, size_t& place) {
  uint64_t length = 0;
  std::memcpy(&length, bytes.data() + place, sizeof length);
  const auto record = bytes.substr(place, length + 16);
  auto data = record.substr(12, length);
  EXPECT_EQ(event_record(data), record) << "checksums";
  place += record.size();
  return data;
}

/// The fields of a protocol buffer, numbers and bytes alike, in their order.
std::vector<std::pair<int, std::string>> fields_of(const std::string& message) {
  std::vector<std::pair<int, std::string>> fields;
  size_t place = 0;
  const auto varint = [&] {
    uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
      const auto byte = static_cast<unsigned char>(message.at(place++));
      value |= uint64_t{byte & 0x7fU} << shift;
      if (byte < 0x80) return value;
    }
  };
  while (place < message.size()) {
    const auto key = varint();
    const size_t fixed = (key & 7) == 1 ? 8 : 4;
    std::string value;
    if ((key & 7) == 0) value = std::to_string(varint());
    const size_t size = (key & 7) == 0 ? 0 : (key & 7) == 2 ? varint() : fixed;
    value += message.substr(place, size);
    place += size;
    fields.emplace_back(static_cast<int>(key >> 3), value);
  }
  return fields;
}

std::vector<std::string> events_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), {});
  std::vector<std::string> events;
  for (size_t place = 0; place < bytes.size();) events.push_back(next_record(bytes, place));
  return events;
}

TEST(EventFile, BeginsWithItsVersionAndHoldsEachStep) {
  const TemporaryFolder folder;
  EventFile file(folder.file("runs/tb"), 1);
  const ScalarEvent scalars[] = {{"loss", 2.5}, {"lr", 0.1}};
  file.append(300, 1e9, scalars);
  EXPECT_THAT(std::filesystem::path(file.path()).filename().string(),
              ::testing::MatchesRegex("events\\.out\\.tfevents\\.[0-9]+\\..+\\.[0-9]+\\.[0-9]+"));
  const auto events = events_of(file.path());
  ASSERT_EQ(events.size(), 3U);
  EXPECT_EQ(fields_of(events[0]).back(), (std::pair<int, std::string>{3, "brain.Event:2"}));
  const auto step = fields_of(events[2]);
  EXPECT_EQ(step[1], (std::pair<int, std::string>{2, "300"}));
  const auto values = fields_of(step[2].second);
  ASSERT_EQ(values.size(), 2U);
  EXPECT_THAT(fields_of(values[0].second), ElementsAre(Pair(1, "loss"), Pair(2, from_hex("00002040"))));
  EXPECT_THAT(fields_of(values[1].second), ElementsAre(Pair(1, "lr"), Pair(2, from_hex("cdcccc3d"))));
}

/// What older files have from there is forgotten, all of it where a run begins anew: the status START of a session at
/// its first step.
TEST(EventFile, SaysFromWhereItsRunGoesOn) {
  const TemporaryFolder folder;
  for (const int64_t first : {1, 41}) {
    const EventFile file(folder.file("tb"), first);
    const auto events = events_of(file.path());
    ASSERT_EQ(events.size(), 2U);
    const auto again = fields_of(events[1]);
    EXPECT_EQ(again[1], (std::pair<int, std::string>{2, std::to_string(first)}));
    EXPECT_EQ(again[2].first, 7);
    EXPECT_THAT(fields_of(again[2].second), ElementsAre(Pair(1, "1")));
  }
}

TEST(EventFile, NamesWhatCannotBeWritten) {
  const TemporaryFolder folder;
  folder.write("tb", "a file");
  EXPECT_THAT(testing::message_of<FileError>([&] { EventFile(folder.file("tb"), 1); }), HasSubstr(folder.file("tb")));
}

}  // namespace
}  // namespace lockstep::trainer
