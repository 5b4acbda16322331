#pragma once
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "replay/format/recording.h"
#include "replay/store/index_appender.h"

namespace lockstep::replay {

/// About how many bytes a recording takes in memory: of what is large in it.
std::size_t memory_of(const StepRecording& recording);

/// Writes recordings into a folder, on a thread of its own and in the order of FORMAT.md: the file first, then its line
/// in the index, both flushed to the disk. Takes the steps of one rank or of several, of one job.
///
/// An error of the thread (a full disk) ends the writing: the steps that wait are dropped, and every later push and
/// finish throws it.
class RecordingWriter {
 public:
  /// Creates the folder if it is missing. Throws FileError. push() waits while more than `limit_bytes` wait.
  RecordingWriter(std::string folder, std::size_t limit_bytes);

  /// Writes what waits, and keeps quiet about errors: call finish() to hear of them.
  ~RecordingWriter();
  RecordingWriter(const RecordingWriter&) = delete;
  RecordingWriter& operator=(const RecordingWriter&) = delete;

  /// Opens a rank's index, so that a folder of another job or world, or one in use, is BadInput before the first step.
  /// Else its first push does it.
  void open(int32_t rank, int32_t world, std::string_view job);

  /// Hands a step over, and returns before it is written. What waits stays below the limit and one step; building a
  /// file takes twice its size besides. The first push of a rank throws as open().
  void push(StepRecording recording);

  /// Returns when everything pushed is acknowledged. More may be pushed afterwards.
  void finish();

  /// The step of the last acknowledged recording; -1 before the first.
  int64_t acknowledged() const;

 private:
  struct Waiting {
    StepRecording recording;
    std::size_t bytes = 0;
  };

  IndexAppender& index_of(int32_t rank, int32_t world, std::string_view job);
  void run();
  std::exception_ptr write(const StepRecording& recording, IndexAppender& index) const;
  void note_written(const std::exception_ptr& error);
  std::string new_file_name(const StepRecording& recording) const;
  void rethrow_error() const;

  const std::string folder_;
  const std::size_t limit_bytes_;
  std::map<int32_t, IndexAppender> indexes_;  // grows in push() only, under mutex_; its elements stay where they are

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Waiting> waiting_;  // guarded by mutex_, as all below; the front is being written
  std::size_t waiting_bytes_ = 0;
  int64_t acknowledged_ = -1;
  std::exception_ptr error_;
  bool ending_ = false;
  std::thread thread_;  // last: everything is there when it starts
};

}  // namespace lockstep::replay
