#include "trainer/verify/finding.h"

#include <filesystem>

#include "core/error.h"
#include "core/files/atomic_file.h"
#include "core/files/make_folders.h"

namespace lockstep::trainer {
namespace {

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
  Finding finding{finding_of(check), ""};
  if (!check.op_case) return finding;
  try {
    finding.case_file = write_case(*check.op_case, folder);
    finding.text += fmt::format("\n  again    lockstep replay --case {}", finding.case_file);
  } catch (const std::exception& error) {
    finding.text += fmt::format("\n  again    not written: {}", error.what());
  }
  return finding;
}

}  // namespace lockstep::trainer
