#include "trainer/verify/finding.h"

#include <algorithm>
#include <filesystem>
#include <string_view>

#include "core/error.h"
#include "core/files/atomic_file.h"
#include "core/files/make_folders.h"

namespace lockstep::trainer {
namespace {

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
