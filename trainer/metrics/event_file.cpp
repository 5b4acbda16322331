#include "trainer/metrics/event_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <climits>

#include "core/error.h"
#include "core/files/make_folders.h"

namespace lockstep::trainer {
namespace {

// Field numbers of Event, Summary, Summary.Value and SessionLog.
constexpr uint32_t kWallTime = 1, kStep = 2, kFileVersion = 3, kSummary = 5, kSessionLog = 7;
constexpr uint32_t kValue = 1, kTag = 1, kSimpleValue = 2, kStatus = 1;
constexpr uint64_t kStart = 1;  // SessionLog.START
constexpr const char* kVersion = "brain.Event:2";

/// Little endian, as the format says.
template <class Word>
std::string bytes_of(Word word) {
  std::string bytes;
  for (size_t i = 0; i < sizeof word; ++i) bytes += static_cast<char>(word >> 8 * i & 0xff);
  return bytes;
}

/// A protocol buffer as it grows (protobuf.dev/programming-guides/encoding).
class Message {
 public:
  void add_number(uint32_t field, uint64_t value) {
    add_varint(field << 3);
    add_varint(value);
  }
  void add_double(uint32_t field, double value) { add_fixed(field << 3 | 1, std::bit_cast<uint64_t>(value)); }
  void add_float(uint32_t field, float value) { add_fixed(field << 3 | 5, std::bit_cast<uint32_t>(value)); }
  void add_text(uint32_t field, std::string_view text) {
    add_varint(field << 3 | 2);
    add_varint(text.size());
    bytes_ += text;
  }
  const std::string& bytes() const { return bytes_; }

 private:
  void add_varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>((value & 0x7f) | 0x80);
    bytes_ += static_cast<char>(value);
  }
  template <class Word>
  void add_fixed(uint32_t key, Word word) {
    add_varint(key);
    bytes_ += bytes_of(word);
  }

  std::string bytes_;
};

Message event_at(double wall_time, int64_t step) {
  Message event;
  event.add_double(kWallTime, wall_time);
  event.add_number(kStep, static_cast<uint64_t>(step));
  return event;
}

/// A CRC of data that holds CRCs is weak: theirs are masked.
uint32_t masked(uint32_t crc) { return std::rotr(crc, 15) + 0xa282ead8U; }

constexpr std::array<uint32_t, 256> crc_table() {
  std::array<uint32_t, 256> table{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t word = byte;
    for (int bit = 0; bit < 8; ++bit) word = word >> 1 ^ (word & 1 ? 0x82f63b78U : 0);
    table[byte] = word;
  }
  return table;
}

/// No other file of this process has it.
std::string new_name() {
  static std::atomic<int> files = 0;
  std::array<char, HOST_NAME_MAX + 1> host{};
  if (::gethostname(host.data(), host.size() - 1) != 0) host[0] = '?';
  return fmt::format("events.out.tfevents.{:.0f}.{}.{}.{}", wall_time(), host.data(), ::getpid(), files++);
}

}  // namespace

double wall_time() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

uint32_t crc32c(std::string_view data) {
  static constexpr auto kTable = crc_table();
  uint32_t crc = ~0U;
  for (const char c : data) crc = crc >> 8 ^ kTable[(crc ^ static_cast<unsigned char>(c)) & 0xff];
  return ~crc;
}

std::string event_record(std::string_view data) {
  const auto length = bytes_of(uint64_t{data.size()});
  return length + bytes_of(masked(crc32c(length))) + std::string(data) + bytes_of(masked(crc32c(data)));
}

EventFile::EventFile(const std::string& folder, int64_t first_step) : path_(folder + "/" + new_name()) {
  make_folders(folder);
  file_.open(path_, std::ios::binary | std::ios::app);
  if (!file_) fail<FileError>("{}: cannot be opened for writing.", path_);
  auto begin = event_at(wall_time(), 0);
  begin.add_text(kFileVersion, kVersion);
  write(begin.bytes());
  Message start;
  start.add_number(kStatus, kStart);
  auto again = event_at(wall_time(), first_step);
  again.add_text(kSessionLog, start.bytes());
  write(again.bytes());
}

void EventFile::append(int64_t step, double wall_time, std::span<const ScalarEvent> scalars) {
  Message summary;
  for (const auto& [tag, value] : scalars) {
    Message one;
    one.add_text(kTag, tag);
    one.add_float(kSimpleValue, static_cast<float>(value));
    summary.add_text(kValue, one.bytes());
  }
  auto event = event_at(wall_time, step);
  event.add_text(kSummary, summary.bytes());
  write(event.bytes());
}

void EventFile::write(std::string_view event) {
  file_ << event_record(event) << std::flush;
  if (!file_) fail<FileError>("{}: cannot be written; is the disk full?", path_);
}

}  // namespace lockstep::trainer
