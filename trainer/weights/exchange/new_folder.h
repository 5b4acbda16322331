#pragma once
#include <filesystem>
#include <string>

#include "core/error.h"

namespace lockstep::trainer {

/// BadInput unless there is nothing at this path, or an empty folder.
inline void require_new_folder(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  if (!fs::exists(path, ignored) || (fs::is_directory(path, ignored) && fs::is_empty(path, ignored))) return;
  fail<BadInput>("{}: exists. Name a folder that does not, or remove it.", path);
}

}  // namespace lockstep::trainer
