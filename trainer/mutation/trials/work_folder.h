#pragma once
#include <filesystem>
#include <string>

#include "core/error.h"

namespace lockstep::trainer {

/// A folder of its own for the checkpoints of mutants, removed at the end.
class WorkFolder {
 public:
  WorkFolder() {
    auto pattern = (std::filesystem::temp_directory_path() / "lockstep-mutate-XXXXXX").string();
    if (!::mkdtemp(pattern.data())) fail<FileError>("{}: cannot be made", pattern);
    path_ = pattern;
  }
  ~WorkFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  WorkFolder(const WorkFolder&) = delete;
  WorkFolder& operator=(const WorkFolder&) = delete;

  std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace lockstep::trainer
