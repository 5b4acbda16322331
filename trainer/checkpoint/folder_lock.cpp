#include "trainer/checkpoint/folder_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <system_error>

#include "core/error.h"
#include "core/files/disk.h"
#include "core/files/make_folders.h"

namespace lockstep::trainer {
namespace {

constexpr const char* kLockFile = ".lock";
constexpr size_t kMostOwner = 300;

std::string lock_path(const std::string& folder) { return (std::filesystem::path(folder) / kLockFile).string(); }

/// "process 4711 on HOST"
std::string own_name() {
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) != 0) host[0] = '?';
  return fmt::format("process {} on {}", ::getpid(), host.data());
}

/// " (process 4711 on HOST)", or nothing if the file does not say: its owner has just come, or somebody else wrote it.
std::string owner_in(const FileDescriptor& file) {
  std::string text(kMostOwner, '\0');
  const auto size = ::pread(file.get(), text.data(), text.size(), 0);
  text.resize(static_cast<size_t>(std::max<ssize_t>(size, 0)));
  if (!text.starts_with("process ") || !text.ends_with('\n')) return "";
  text.pop_back();
  const auto is_plain = [](unsigned char c) { return c >= 0x20 && c < 0x7f; };
  return std::all_of(text.begin(), text.end(), is_plain) ? fmt::format(" ({})", text) : "";
}

}  // namespace

FolderLock::FolderLock(const std::string& folder, std::string_view key) : path_(lock_path(folder)) {
  make_folders(folder);
  // A link might lead to a file that is worth something, and a pipe has nobody to open it for.
  file_.reset(::open(path_.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0666));
  if (!file_.is_open()) failed("cannot be written");
  struct stat status {};
  if (::fstat(file_.get(), &status) != 0) failed("cannot be read");
  if (!S_ISREG(status.st_mode)) fail<FileError>("{} is no file", path_);
  lock(folder, key);
  write_owner();
}

void FolderLock::lock(const std::string& folder, std::string_view key) {
  int result = 0;
  while ((result = ::flock(file_.get(), LOCK_EX | LOCK_NB)) != 0 && errno == EINTR) continue;
  if (result == 0) return;
  // Without a lock two runs could spoil each other's checkpoints: a file system that has none is not for results.
  if (errno != EWOULDBLOCK) failed("cannot be locked");
  fail<BadInput>("{}: another run{} writes here. Wait until it has ended, or choose another {}.", folder,
                 owner_in(file_), key);
}

void FolderLock::write_owner() const {
  const auto text = own_name() + "\n";
  if (::ftruncate(file_.get(), 0) != 0 || write_all(file_.get(), std::as_bytes(std::span(text))) != 0)
    failed("cannot be written");
}

bool FolderLock::is_on(const std::string& folder) const {
  struct stat here {
  }, there{};
  return ::fstat(file_.get(), &here) == 0 && ::stat(lock_path(folder).c_str(), &there) == 0 &&
         here.st_dev == there.st_dev && here.st_ino == there.st_ino;
}

void FolderLock::failed(std::string_view what) const {
  const int reason = errno;
  fail<FileError>("{} {}: {}", path_, what, std::generic_category().message(reason));
}

std::vector<FolderLock> lock_folders(std::span<const FolderToLock> folders) {
  std::vector<FolderLock> locks;
  for (const auto& [folder, key] : folders) {
    const auto is_locked = [&path = folder](const FolderLock& lock) { return lock.is_on(path); };
    if (std::none_of(locks.begin(), locks.end(), is_locked)) locks.emplace_back(folder, key);
  }
  return locks;
}

}  // namespace lockstep::trainer
