#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "core/files/random_access_file.h"

/// Text files that programs append lines to, of any size: nothing here takes more memory than a block.
namespace lockstep {

struct FileRange {
  int64_t begin = 0, end = 0;
};

struct TextLine {
  static constexpr size_t kMostHead = 64;

  std::string_view head;  ///< its first bytes, at most kMostHead
  char last = '\0';       ///< its last byte before the newline; zero if there is none
  FileRange range;        ///< newline included
  bool is_whole = false;  ///< whether it has a newline: the last line of a file may lack it
};

/// Calls `visit` for each line in turn. FileError as RandomAccessFile::read.
void for_each_line(const RandomAccessFile& file, const std::function<void(const TextLine&)>& visit);

/// Replaces the file by these parts of it, in this order, as AtomicFile does. FileError if it cannot be read or
/// written.
void keep_ranges(const RandomAccessFile& file, std::span<const FileRange> ranges);

}  // namespace lockstep
