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

std::string written(const replay::OpCase& one, const std::string& folder) {
  try {
    const auto path = free_path(folder);
    const auto bytes = replay::to_file(one);
    write_file_atomically(path, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    return fmt::format("lockstep replay --case {}", path);
  } catch (const std::exception& error) {
    return fmt::format("not written: {}", error.what());
  }
}

}  // namespace

std::string finding_of(const StepCheck& check) {
  return fmt::format("{}\n{}", check.difference, check.blame ? check.blame->text() : "");
}

std::string finding_with_case(const StepCheck& check, const std::string& folder) {
  const auto text = finding_of(check);
  return check.op_case ? fmt::format("{}\n  again    {}", text, written(*check.op_case, folder)) : text;
}

}  // namespace lockstep::trainer
