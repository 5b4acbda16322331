#pragma once
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "tests/tools/run_lockstep.h"

/// All that a run left for its user, as one text to be compared with a golden one.
namespace lockstep {

/// What has tests of its own, and is long: only that it is there. `begin`: "\"coverage\": {".
inline std::string without_part(const std::string& text, const std::string& begin, const std::string& word) {
  std::istringstream stream(text);
  std::string result, end;
  for (std::string line; std::getline(stream, line);) {
    const bool begins = end.empty() && line.find(begin) != line.npos;
    const char open = begin.back();
    if (begins) end = std::string(line.find('"'), ' ') + (open == '{' ? "}" : "]");
    if (begins) result += line.substr(0, line.find(open)) + word + ",\n";
    if (end.empty()) result += line + "\n";
    if (!begins && line.rfind(end, 0) == 0) end.clear();
  }
  return result;
}

/// Times, memory and places vary; everything else is to be the same everywhere.
inline std::string without_measurements(std::string text, const TemporaryFolder& folder) {
  const std::pair<const char*, const char*> kinds[] = {
      {" MB +[0-9.]+x\n", " MB    TIMEx\n"},
      {"[0-9,]+ (tokens/s( checked)?)  [0-9]+ MiB peak  [0-9hms]+\n", "RATE $1  MEMORY MiB peak  TIME\n"},
      {"[0-9,]+ (tokens/s on the mesh alone,) [0-9,]+ ", "RATE $1 RATE "},
      {"\"worst_error_over_bound\": (0\\.0*[1-9][0-9]*|[1-9][0-9.]*e-[0-9]+)", "\"worst_error_over_bound\": WITHIN"},
      {"of [0-9]+ rows of the op table", "of ROWS rows of the op table"},
      {"\n  rows   [^\n]*\n( {15}[^\n]*\n)*", "\n  rows         UNMET\n"},
      {"at most 0\\.[0-9]+ of what", "at most WITHIN of what"},
      {"\"tokens_per_second\": [0-9.e+-]+", "\"tokens_per_second\": RATE"},
      {"\"checked_tokens_per_second\": [0-9.e+-]+", "\"checked_tokens_per_second\": RATE"}};
  for (const auto& [pattern, word] : kinds) text = std::regex_replace(text, std::regex(pattern), word);
  for (size_t at = text.find(folder.path()); at != text.npos; at = text.find(folder.path(), at))
    text.replace(at, folder.path().size(), "FOLDER");
  return without_part(without_part(text, "\"coverage\": {", "COVERAGE"), "\"losses\": [", "LOSSES");
}

/// Numbers with a fraction to three digits, and rounding errors of float64 as a word: native numerics promise no bits.
inline std::string to_three_digits(const std::string& text) {
  static const std::regex number("-?[0-9]+(\\.[0-9]+(e[+-]?[0-9]+)?|e[+-]?[0-9]+)");
  std::string result;
  auto rest = text.cbegin();
  for (std::sregex_iterator match(text.begin(), text.end(), number), end; match != end; ++match) {
    result.append(rest, (*match)[0].first);
    rest = (*match)[0].second;
    const double value = std::stod(match->str());
    result += std::abs(value) < 1e-12 ? "ROUNDING" : fmt::format("{:.3g}", value);
  }
  return result.append(rest, text.cend());
}

/// Files below `folder`, one a line, sorted; of a checkpoint its folder alone.
inline std::string files_below(const std::filesystem::path& folder, const std::vector<std::string>& names) {
  std::vector<std::string> files;
  for (const auto& name : names) {
    if (!std::filesystem::is_directory(folder / name)) continue;
    std::filesystem::recursive_directory_iterator entry(folder / name);
    for (; entry != std::filesystem::recursive_directory_iterator(); ++entry) {
      const bool is_checkpoint = entry->path().filename().string().starts_with("step-");
      if (is_checkpoint) entry.disable_recursion_pending();
      if (is_checkpoint || !entry->is_directory())
        files.push_back(std::filesystem::relative(entry->path(), folder).string());
    }
  }
  std::sort(files.begin(), files.end());
  std::string text;
  for (const auto& file : files) text += file + "\n";
  return text;
}

inline std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

/// Says where they part, and then the whole text: what is right is pasted into the test.
inline void expect_golden(const std::string& actual, const std::string& golden) {
  if (actual == golden) return;
  const auto expected = lines_of(golden), given = lines_of(actual);
  size_t line = 0;
  while (line < std::min(expected.size(), given.size()) && expected[line] == given[line]) ++line;
  const auto at = [&](const std::vector<std::string>& lines) { return line < lines.size() ? lines[line] : "(end)"; };
  ADD_FAILURE() << "line " << line << " of the report is\n  " << at(given) << "\nand not\n  " << at(expected)
                << "\nThe whole report:" << actual << "(end of the report)";
}

}  // namespace lockstep
