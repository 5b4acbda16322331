#include "replay/store/recording_index.h"

#include <charconv>
#include <fstream>
#include <iterator>
#include <limits>

#include "core/error.h"
#include "core/mesh_text.h"

namespace lockstep::replay {
namespace {

constexpr std::string_view kStart = "lockstep-index ";
constexpr std::string_view kCheck = " check ";

/// Reads a line from the left.
class Fields {
 public:
  explicit Fields(std::string_view rest) : rest_(rest) {}

  void word(std::string_view expected) {
    if (!rest_.starts_with(expected)) fail<FileError>("'{}' is missing", expected);
    rest_.remove_prefix(expected.size());
  }

  /// Digits as a program prints them: no sign, no zeros before them.
  int64_t number(int64_t most = std::numeric_limits<int64_t>::max()) {
    const auto digits = until_space();
    int64_t value = 0;
    const auto [end, error] = std::from_chars(digits.begin(), digits.end(), value);
    const bool plain = error == std::errc() && end == digits.end() && fmt::to_string(value) == digits;
    if (!plain || value < 0 || value > most) fail<FileError>("'{}' is no number, or too large", digits);
    return value;
  }

  bool flag() { return number(1) == 1; }

  Digest digest() {
    const auto digits = until_space();
    Digest value;
    const bool plain = digits.size() == 32 && hexadecimal(digits.substr(0, 16), value.high) &&
                       hexadecimal(digits.substr(16), value.low) && value.text() == digits;
    if (!plain) fail<FileError>("'{}' is no digest", digits);
    return value;
  }

  std::string_view until_space() {
    const auto taken = rest_.substr(0, rest_.find(' '));
    rest_.remove_prefix(taken.size());
    return taken;
  }

  bool at_end() const { return rest_.empty(); }

 private:
  static bool hexadecimal(std::string_view digits, uint64_t& value) {
    const auto [end, error] = std::from_chars(digits.begin(), digits.end(), value, 16);
    return error == std::errc() && end == digits.end();
  }

  std::string_view rest_;
};

/// "rank3-step120.h5" or "rank3-step120.N.h5", N from 2: no path, no other rank's or step's.
bool is_file_of(const IndexEntry& entry) {
  if (entry.file == step_file_name(entry.rank, entry.step)) return true;
  const auto prefix = fmt::format("rank{}-step{}.", entry.rank, entry.step);
  if (!entry.file.starts_with(prefix)) return false;
  int64_t times = 0;
  std::from_chars(entry.file.data() + prefix.size(), entry.file.data() + entry.file.size(), times);
  return times >= 2 && entry.file == step_file_name(entry.rank, entry.step, times);
}

/// The line before its check.
std::string body_of(const IndexEntry& e) {
  return fmt::format("{}1 rank {} of {} job {} step {} state {} complete {} bytes {} digest {} file {}", kStart, e.rank,
                     e.world, e.job.text(), e.step, e.has_state ? 1 : 0, e.complete ? 1 : 0, e.bytes, e.digest.text(),
                     e.file);
}

IndexEntry parse_fields(Fields& fields) {
  IndexEntry entry;
  fields.word("rank ");
  entry.rank = static_cast<int32_t>(fields.number(kMaxRanks));
  fields.word(" of ");
  entry.world = static_cast<int32_t>(fields.number(kMaxRanks));
  fields.word(" job ");
  entry.job = fields.digest();
  fields.word(" step ");
  entry.step = fields.number();
  fields.word(" state ");
  entry.has_state = fields.flag();
  fields.word(" complete ");
  entry.complete = fields.flag();
  fields.word(" bytes ");
  entry.bytes = static_cast<uint64_t>(fields.number());
  fields.word(" digest ");
  entry.digest = fields.digest();
  fields.word(" file ");
  entry.file = fields.until_space();
  return entry;
}

/// The line up to its check, which has to match.
std::string_view checked_body(std::string_view line) {
  const auto place = line.rfind(kCheck);
  if (place == line.npos) fail<FileError>("it has no check");
  Fields check(line.substr(place + kCheck.size()));
  const auto body = line.substr(0, place);
  if (check.digest() != digest(body) || !check.at_end()) fail<FileError>("its check does not match");
  return body;
}

/// A good line that does not belong into this index.
void require_same_run(const Index& index, const IndexEntry& entry, int32_t rank) {
  if (entry.rank != rank) fail<FileError>("it is of rank {}", entry.rank);
  if (index.entries.empty()) return;
  const auto& first = index.entries.front();
  if (entry.world != first.world || entry.job != first.job)
    fail<FileError>("it is of another run than the lines before it");
}

}  // namespace

std::string index_file_name(int32_t rank) { return fmt::format("rank{}.index", rank); }

std::string step_file_name(int32_t rank, int64_t step, int64_t times) {
  return times == 1 ? fmt::format("rank{}-step{}.h5", rank, step)
                    : fmt::format("rank{}-step{}.{}.h5", rank, step, times);
}

std::string index_line(const IndexEntry& entry) {
  const auto body = body_of(entry);
  return fmt::format("{}{}{}\n", body, kCheck, digest(body).text());
}

IndexEntry parse_index_line(std::string_view line) {
  Fields fields(checked_body(line));
  fields.word(kStart);
  const auto version = fields.number();
  if (version != 1) fail<FileError>("it was made by a newer Lockstep: version {}, this one reads 1", version);
  fields.word(" ");
  auto entry = parse_fields(fields);
  if (!fields.at_end()) fail<FileError>("something stands behind the file's name");
  if (entry.rank >= entry.world) fail<FileError>("rank {} of {}", entry.rank, entry.world);
  if (!is_file_of(entry)) fail<FileError>("'{}' is no name of its file", entry.file);
  return entry;
}

Index parse_index(std::string_view text, int32_t rank, const std::string& path) {
  Index index;
  for (int64_t number = 1; !text.empty(); ++number) {
    const auto end = text.find('\n');
    if (end == text.npos) break;
    try {
      const auto entry = parse_index_line(text.substr(0, end));
      require_same_run(index, entry, rank);
      index.entries.push_back(entry);
    } catch (const FileError& error) {
      index.damage.push_back(fmt::format("{}:{}: a step is lost, its line is damaged: {}", path, number, error.what()));
    }
    text.remove_prefix(end + 1);
  }
  index.torn = text.size();
  return index;
}

Index read_index(const std::string& path, int32_t rank) {
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  if (!file.is_open() || file.bad()) fail<FileError>("{} cannot be read", path);
  return parse_index(text, rank, path);
}

}  // namespace lockstep::replay
