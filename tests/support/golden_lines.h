#pragma once
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>

#include "core/numerics_version.h"

/// Golden bits: what canonical numerics gave when its version was fixed, as lines "NAME BITS" of files in
/// tests/golden/. The bits are digests (XXH3-128), or numbers as hexadecimal floats. They are the same on every machine
/// and instruction set, in every build and with any number of threads, because that is what canonical numerics
/// promises: a file that is written anywhere holds everywhere.
namespace lockstep::testing {

using GoldenLines = std::map<std::string, std::string>;

/// Throws std::logic_error where the name is taken.
inline void add_line(GoldenLines& lines, const std::string& name, const std::string& bits) {
  if (!lines.emplace(name, bits).second) throw std::logic_error("two golden lines of the name " + name);
}

/// "tests/golden/numerics_v1_kernels.txt": a version has files of its own, one for each test program.
inline std::string golden_file(std::string_view section, int64_t version = kNumericsVersion) {
  return fmt::format("tests/golden/numerics_v{}_{}.txt", version, section);
}

/// Writes the files, by LOCKSTEP_WRITE_GOLDEN=1 and --gtest_filter='GoldenBits*' of each test program.
inline constexpr const char* kWriteGolden = "make golden";

/// Lines of a file's text; '#' begins a comment. Throws std::runtime_error where a line is not two words, or a name is
/// there twice.
inline GoldenLines parse_golden(const std::string& text) {
  GoldenLines lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    if (line.empty() || line.starts_with('#')) continue;
    std::istringstream words(line);
    std::string name, bits, more;
    if (!(words >> name >> bits) || words >> more || !lines.emplace(name, bits).second)
      throw std::runtime_error(fmt::format("no golden line, or one that is there twice: {}", line));
  }
  return lines;
}

inline std::string golden_text(const GoldenLines& lines) {
  auto text = fmt::format(
      "# Golden bits of {} (docs/numerics.md), written by '{}'; equal on every machine.\n"
      "# Never edited: other bits are another version.\n",
      numerics_version_text(), kWriteGolden);
  for (const auto& [name, bits] : lines) text += fmt::format("{} {}\n", name, bits);
  return text;
}

/// Lines with other bits, lines that the file lacks and those that it alone has; and all of them to read.
struct GoldenDifference {
  size_t changed = 0, added = 0, gone = 0;
  std::string list;
  size_t count() const { return changed + added + gone; }
};

inline GoldenDifference golden_difference(const GoldenLines& actual, const GoldenLines& expected) {
  GoldenDifference difference;
  for (const auto& [name, bits] : expected) {
    const auto found = actual.find(name);
    if (found == actual.end()) {
      ++difference.gone;
      difference.list += fmt::format("  {}: {} in the file, computed by no test\n", name, bits);
    } else if (found->second != bits) {
      ++difference.changed;
      difference.list += fmt::format("  {}: {}, in the file {}\n", name, found->second, bits);
    }
  }
  for (const auto& [name, bits] : actual)
    if (!expected.contains(name)) {
      ++difference.added;
      difference.list += fmt::format("  {}: {}, not in the file\n", name, bits);
    }
  return difference;
}

/// What differs and what to do about it; nothing where nothing does.
inline std::string golden_complaint(const GoldenLines& actual, const GoldenLines& expected, std::string_view section) {
  const auto difference = golden_difference(actual, expected);
  if (difference.count() == 0) return {};
  const auto what = fmt::format("golden bits of {} differ in {} lines of {}:\n{}", numerics_version_text(),
                                difference.count(), golden_file(section), difference.list);
  if (difference.changed == 0) return fmt::format("{}no bits changed: write the file with '{}'", what, kWriteGolden);
  return fmt::format(
      "{}canonical bits changed: raise kNumericsVersion in core/numerics_version.h to {} and write {} with '{}' "
      "(docs/numerics.md). If they should not have, the change is wrong.",
      what, kNumericsVersion + 1, golden_file("*", kNumericsVersion + 1), kWriteGolden);
}

/// Why `actual` is not what the file at `path` holds; nothing if it is. With `write` the file gets what is new, and
/// loses what is gone; lines whose bits differ are never written over.
inline std::string check_golden_file(const std::string& path, const GoldenLines& actual, std::string_view section,
                                     bool write) {
  std::ifstream file(path);
  if (!file && !write)
    return fmt::format("{} cannot be read: a new numerics version needs its golden bits; write them with '{}'",
                       golden_file(section), kWriteGolden);
  std::stringstream text;
  text << file.rdbuf();
  const auto expected = parse_golden(text.str());
  if (!write || golden_difference(actual, expected).changed > 0) return golden_complaint(actual, expected, section);
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream written(path);
  written << golden_text(actual) << std::flush;
  return written ? "" : fmt::format("{} cannot be written", path);
}

/// check_golden_file() of the file in the tree below `root`; LOCKSTEP_WRITE_GOLDEN says whether to write.
inline std::string check_golden(const std::string& root, const GoldenLines& actual, std::string_view section) {
  return check_golden_file(root + "/" + golden_file(section), actual, section,
                           std::getenv("LOCKSTEP_WRITE_GOLDEN") != nullptr);
}

}  // namespace lockstep::testing
