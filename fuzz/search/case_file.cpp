#include "fuzz/search/case_file.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>

#include "core/error.h"
#include "core/files/atomic_file.h"

namespace lockstep::fuzz {
namespace {

constexpr const char* kExtension = ".case";

std::string file_name(const CaseName& name) {
  auto text = fmt::format("{}_{:x}", name.check, name.seed);
  for (auto& letter : text)
    if (!std::isalnum(static_cast<unsigned char>(letter))) letter = '_';
  return text + kExtension;
}

std::string commented(const std::string& message) {
  std::string text = "# ";
  for (const char letter : message) {
    text += letter;
    if (letter == '\n') text += "# ";
  }
  return text + "\n";
}

}  // namespace

std::string write_case_file(const std::string& folder, const std::string& kind, const FoundFailure& failure) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) fail<FileError>("{} cannot be made: {}", folder, error.message());
  const auto path = (std::filesystem::path(folder) / file_name(failure.name)).string();
  write_file_atomically(path, fmt::format("{} {}\n{}", kind, to_text(failure.name), commented(failure.message)));
  return path;
}

CaseFile read_case_file(const std::string& path) {
  std::ifstream file(path);
  if (!file) fail<BadInput>("{} cannot be read.", path);
  std::string kind, name;
  file >> kind >> name;
  if (name.empty()) fail<BadInput>("{} holds no case; its first line should be KIND and the case's name.", path);
  try {
    return {path, kind, parse_case_name(name)};
  } catch (const BadInput& error) {
    fail<BadInput>("{}: {}", path, error.what());
  }
}

std::vector<CaseFile> read_case_files(const std::string& folder) {
  std::vector<CaseFile> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
    if (entry.path().extension() == kExtension) files.push_back(read_case_file(entry.path().string()));
  if (files.empty()) fail<BadInput>("{} holds no case files (*{}).", folder, kExtension);
  std::sort(files.begin(), files.end(), [](const auto& a, const auto& b) { return a.path < b.path; });
  return files;
}

}  // namespace lockstep::fuzz
