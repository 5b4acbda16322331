#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/digest/digest.h"

/// The index of a rank's steps: which ones were acknowledged, and in which files they are. FORMAT.md has the line.
namespace lockstep::replay {

/// One acknowledged step.
struct IndexEntry {
  int32_t rank = 0, world = 1;
  Digest job;  ///< of the job's text
  int64_t step = 0;
  bool has_state = false, complete = true;
  uint64_t bytes = 0;
  Digest digest;     ///< of the file
  std::string file;  ///< in the index's folder: step_file_name
  bool operator==(const IndexEntry&) const = default;
};

/// "rank3.index".
std::string index_file_name(int32_t rank);

/// "rank3-step120.h5"; the second time that the step is recorded "rank3-step120.2.h5".
std::string step_file_name(int32_t rank, int64_t step, int64_t times = 1);

/// The line, newline included.
std::string index_line(const IndexEntry& entry);

/// The inverse for a line without its newline: accepts what index_line prints and nothing else. Throws FileError with
/// what is wrong.
IndexEntry parse_index_line(std::string_view line);

/// What an index holds.
struct Index {
  std::vector<IndexEntry> entries;  ///< in the order of the lines
  std::vector<std::string> damage;  ///< one text per line that is damaged: path, line, what is wrong
  std::size_t torn = 0;             ///< bytes behind the last newline: a step that was never acknowledged
};

/// Reads an index's text. Never throws for damage. Lines of another rank than `rank`, or of another job or world than
/// the first good line, are damage too. `path` serves for messages alone.
Index parse_index(std::string_view text, int32_t rank, const std::string& path);

/// The same of a file. FileError if it cannot be read.
Index read_index(const std::string& path, int32_t rank);

}  // namespace lockstep::replay
