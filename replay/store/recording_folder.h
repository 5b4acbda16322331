#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "replay/format/recording.h"
#include "replay/store/recording_index.h"

namespace lockstep::replay {

/// A folder of recordings, for reading. It reads the indexes once; damage is collected, and what is whole can be read.
class RecordingFolder {
 public:
  /// Throws BadInput if `path` is no folder, or has no index in it.
  explicit RecordingFolder(std::string path);

  /// Ranks that have an index, ascending.
  std::vector<int32_t> ranks() const;

  /// Acknowledged steps, ascending. Empty for other ranks.
  std::vector<int64_t> steps(int32_t rank) const;

  /// The line of an acknowledged step; the last one if it was recorded again. BadInput if there is none, with the steps
  /// that there are.
  const IndexEntry& entry(int32_t rank, int64_t step) const;

  /// The recording of a step. FileError that names the file if it is missing, differs from its line in the index or
  /// cannot be read; BadInput as entry().
  StepRecording read(int32_t rank, int64_t step) const;

  /// The step at which a replay of `step` has to begin: the last one up to it that has a state, all steps after it
  /// being there and complete. FileError that says what is missing; BadInput as entry().
  int64_t first_with_state(int32_t rank, int64_t step) const;

  /// Reads every file, and returns a text for everything that is lost: file, rank, step, why. Files are compared with
  /// their digests, not parsed.
  std::vector<std::string> damage() const;

  /// Files that belong to no acknowledged step, and torn lines: what a crash leaves. Nothing is lost with them.
  std::vector<std::string> leftovers() const;

  const std::string& path() const { return path_; }

 private:
  struct Rank {
    std::map<int64_t, IndexEntry> steps;
    std::vector<std::string> damage;
    std::size_t torn = 0;
  };

  void read_rank(int32_t rank);
  std::string file(const IndexEntry& entry) const { return path_ + "/" + entry.file; }
  Bytes read_bytes(const IndexEntry& entry) const;

  std::string path_;
  std::map<int32_t, Rank> ranks_;
  std::vector<std::string> named_;  // files that lines of the indexes name, replaced recordings included
};

}  // namespace lockstep::replay
