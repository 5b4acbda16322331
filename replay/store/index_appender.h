#pragma once
#include <cstdint>
#include <string>

#include "core/files/file_descriptor.h"
#include "replay/store/recording_index.h"

namespace lockstep::replay {

/// Appends to the index of one rank. The index stays locked: two runs cannot record into it at once.
class IndexAppender {
 public:
  /// Opens or creates the index, and cuts off a torn last line. Throws BadInput if it is of another job or world, or if
  /// somebody else writes it; FileError if the folder cannot be written.
  IndexAppender(const std::string& folder, int32_t rank, int32_t world, const Digest& job);

  /// The line is on the disk when this returns. On a FileError the index is as before. REQUIRES: the entry is of
  /// this rank, world and job.
  void append(const IndexEntry& entry);

 private:
  void open(const std::string& folder);
  void require_same_run(const Index& index) const;
  void cut(int64_t size);
  [[noreturn]] void failed(std::string_view what) const;

  std::string path_;
  FileDescriptor file_;
  int32_t rank_, world_;
  Digest job_;
  int64_t size_ = 0;
};

}  // namespace lockstep::replay
