#include "trainer/verify/finding.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "core/error.h"
#include "core/files/atomic_file.h"
#include "core/files/make_folders.h"
#include "trainer/launch/together.h"

namespace lockstep::trainer {
namespace {

using Json = nlohmann::json;

/// A file name may be any bytes.
constexpr auto kReplace = Json::error_handler_t::replace;
constexpr std::string_view kAgain = "\n  again    ";

std::string free_path(const std::string& folder) {
  make_folders(folder);
  for (int number = 1;; ++number) {
    auto path = fmt::format("{}/case-{}.h5", folder, number);
    if (!std::filesystem::exists(path)) return path;
  }
}

std::string write_case(const replay::OpCase& one, const std::string& folder) {
  auto path = free_path(folder);
  const auto bytes = replay::to_file(one);
  write_file_atomically(path, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  return path;
}

}  // namespace

std::string finding_of(const StepCheck& check) {
  return fmt::format("{}\n{}", check.difference, check.blame ? check.blame->text() : "");
}

Finding finding_with_case(const StepCheck& check, const std::string& folder) {
  Finding finding{finding_of(check), "", ""};
  if (!check.op_case) return finding;
  try {
    finding.case_file = write_case(*check.op_case, folder);
    const auto command = fmt::format("lockstep replay --case {}", finding.case_file);
    // A move alone may be right, where what it shares with others or its way between processes is wrong.
    if (check.blame && check.blame->is_of_move())
      finding.text += fmt::format("\n  case     {} moves it alone", command);
    else
      finding.text += fmt::format("{}{}", kAgain, command), finding.next = command;
  } catch (const std::exception& error) {
    finding.text += fmt::format("\n  case     not written: {}", error.what());
  }
  return finding;
}

Finding agreed_finding(const Mesh& mesh, const StepCheck& check, const std::string& folder) {
  std::optional<Found> mine;
  if (check.op_case) {
    const auto finding = finding_with_case(check, folder);
    mine = Found{0, Json{finding.text, finding.case_file, finding.next}.dump(-1, ' ', false, kReplace)};
  }
  const auto written = earliest(mesh, mine);
  if (!written) return {finding_of(check), "", ""};
  const auto parsed = Json::parse(written->text);
  return {parsed.at(0), parsed.at(1), parsed.at(2)};
}

Finding with_next(Finding finding, const std::string& command) {
  finding.text = with_next(finding.text, command);
  if (finding.next.empty()) finding.next = command;
  return finding;
}

std::string with_next(const std::string& text, const std::string& command) {
  if (text.find(kAgain) != text.npos) return text;
  const auto end = std::min(text.find("\n  resume "), text.size());
  return fmt::format("{}{}{}{}", text.substr(0, end), kAgain, command, text.substr(end));
}

std::string next_of(const std::string& text) {
  const auto begin = text.find(kAgain);
  if (begin == text.npos) return "";
  const auto command = begin + kAgain.size();
  return text.substr(command, text.find('\n', command) - command);
}

}  // namespace lockstep::trainer
