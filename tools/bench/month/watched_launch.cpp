#include "tools/bench/month/watched_launch.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>

#include "core/error.h"
#include "core/files/file_descriptor.h"

namespace lockstep::bench {
namespace {

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> result;
  for (auto& word : words) result.push_back(word.data());
  result.push_back(nullptr);
  return result;
}

/// The number behind `key` in a line of JSON.
template <class Number>
Number number_behind(std::string_view line, std::string_view key) {
  Number number{};
  const auto at = line.find(key);
  if (at != line.npos) std::from_chars(line.data() + at + key.size(), line.data() + line.size(), number);
  return number;
}

}  // namespace

WatchedLaunch::WatchedLaunch(const std::vector<std::string>& arguments, const std::string& log) : log_(log) {
  auto words = arguments;
  const auto here = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  words.insert(words.begin(), (here / "lockstep").string());
  const auto all = pointers(words);
  const FileDescriptor file(::open(log.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  id_ = ::fork();
  LOCKSTEP_CHECK(id_ >= 0, "a process cannot be started");
  if (id_ > 0) return;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  for (const int stream : {STDOUT_FILENO, STDERR_FILENO}) ::dup2(file.get(), stream);
  ::execv(all[0], all.data());
  ::_exit(1);
}

WatchedLaunch::~WatchedLaunch() {
  if (!runs()) return;
  ::kill(id_, SIGKILL);
  ::waitpid(id_, nullptr, 0);
}

bool WatchedLaunch::runs() {
  int status = 0;
  if (!status_ && ::waitpid(id_, &status, WNOHANG) == id_) status_ = status;
  return !status_;
}

void WatchedLaunch::require_success() {
  int status = 0;
  if (!status_ && ::waitpid(id_, &status, 0) == id_) status_ = status;
  if (status_ && WIFEXITED(*status_) && WEXITSTATUS(*status_) == 0) return;
  std::ifstream file(log_);
  fail<FileError>("a run that was to end well did not; it said: {}",
                  std::string(std::istreambuf_iterator<char>(file), {}));
}

std::vector<pid_t> WatchedLaunch::ranks() const {
  const auto id = std::to_string(id_);
  std::ifstream file("/proc/" + id + "/task/" + id + "/children");
  return {std::istream_iterator<pid_t>(file), {}};
}

LastStep last_step(const std::string& path) {
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat status {};
  if (!file.is_open() || ::fstat(file.get(), &status) != 0) return {};
  std::array<char, 4096> end{};
  const auto from = std::max<off_t>(status.st_size - static_cast<off_t>(end.size()), 0);
  const auto count = ::pread(file.get(), end.data(), end.size(), from);
  std::string_view text(end.data(), static_cast<size_t>(std::max<ssize_t>(count, 0)));
  text = text.substr(0, text.rfind('\n') == text.npos ? 0 : text.rfind('\n'));
  const auto line = text.substr(text.rfind('\n') == text.npos ? 0 : text.rfind('\n') + 1);
  return {number_behind<int64_t>(line, "{\"step\":"), status.st_ino};
}

double checkpoint_seconds(const std::string& path) {
  std::ifstream file(path);
  double sum = 0;
  for (std::string line; std::getline(file, line);) sum += number_behind<double>(line, "\"checkpoint_seconds\":");
  return sum;
}

}  // namespace lockstep::bench
