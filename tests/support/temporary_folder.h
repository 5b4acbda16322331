#pragma once
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace lockstep {

/// A folder of its own for one test, removed at the end.
class TemporaryFolder {
 public:
  TemporaryFolder() : path_(::mkdtemp(pattern_)) {}
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::string& path() const { return path_; }
  std::string file(const std::string& name) const { return path_ + "/" + name; }

  /// Writes a file and gives its path. An older one is removed first: some file systems flush what is truncated.
  std::string write(const std::string& name, const std::string& content) const {
    std::filesystem::remove(file(name));
    std::ofstream(file(name), std::ios::binary) << content;
    return file(name);
  }

 private:
  char pattern_[32] = "/tmp/lockstep-test-XXXXXX";
  std::string path_;
};

inline std::string file_content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace lockstep
