#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/files/file_descriptor.h"

/// One writer at a time in a folder.
namespace lockstep::trainer {

/// A folder that is locked for as long as this lives and the process does; however that ends, the folder is free at
/// once. The lock is the system's (flock) on the file `.lock` in the folder, which says who has it and stays for good.
/// Readers need none. It keeps out another lock of this process, too. Programs that this process becomes or starts do
/// not have it; a child that is only forked shares it: it must not outlive this process.
class FolderLock {
 public:
  /// Creates the folder, durably. BadInput if somebody else has it: says who, and to choose another `key`
  /// ("job.dump_folder"). FileError if the folder cannot be written, or its file system has no locks.
  FolderLock(const std::string& folder, std::string_view key);

  /// Whether this is the folder, by whatever path.
  bool is_on(const std::string& folder) const;

 private:
  void lock(const std::string& folder, std::string_view key);
  void write_owner() const;
  [[noreturn]] void failed(std::string_view what) const;

  std::string path_;
  FileDescriptor file_;
};

struct FolderToLock {
  std::string folder;
  std::string_view key;  ///< of the job, that says which folder
};

/// Locks them in this order; folders that are one are locked once. Errors as FolderLock's, with nothing locked.
std::vector<FolderLock> lock_folders(std::span<const FolderToLock> folders);

}  // namespace lockstep::trainer
