#include "replay/store/recording_writer.h"

#include <filesystem>
#include <utility>

#include "core/files/atomic_file.h"
#include "core/files/make_folders.h"
#include "replay/store/recording_file.h"

namespace lockstep::replay {
std::size_t memory_of(const StepRecording& r) {
  std::size_t bytes = r.payload.size() + (r.tokens.size() + r.labels.size() + r.positions.size()) * sizeof(int32_t);
  bytes += r.ops.size() * sizeof(RecordedOp) + r.results.size() * sizeof(RecordedResult);
  bytes += r.collectives.size() * sizeof(RecordedCollective) + r.pieces.size() * sizeof(RecordedPiece);
  for (const auto& tensor : r.state) bytes += tensor.bytes.size();
  for (const auto& name : r.names) bytes += name.size();
  return bytes;
}

RecordingWriter::RecordingWriter(std::string folder, std::size_t limit_bytes)
    : folder_(std::move(folder)), limit_bytes_(limit_bytes) {
  make_folders(folder_);
  thread_ = std::thread([this] { run(); });
}

RecordingWriter::~RecordingWriter() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void RecordingWriter::open(int32_t rank, int32_t world, std::string_view job) {
  const std::lock_guard lock(mutex_);
  index_of(rank, world, job);
}

void RecordingWriter::push(StepRecording recording) {
  const auto bytes = memory_of(recording);
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return error_ || waiting_bytes_ <= limit_bytes_; });
  rethrow_error();
  index_of(recording.rank, recording.world, recording.job);
  waiting_bytes_ += bytes;
  waiting_.push_back({std::move(recording), bytes});
  changed_.notify_all();
}

void RecordingWriter::finish() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return error_ || waiting_.empty(); });
  rethrow_error();
}

int64_t RecordingWriter::acknowledged() const {
  const std::lock_guard lock(mutex_);
  return acknowledged_;
}

void RecordingWriter::rethrow_error() const {
  if (error_) std::rethrow_exception(error_);
}

IndexAppender& RecordingWriter::index_of(int32_t rank, int32_t world, std::string_view job) {
  const auto found = indexes_.find(rank);
  if (found != indexes_.end()) return found->second;
  return indexes_.try_emplace(rank, folder_, rank, world, digest(job)).first->second;
}

void RecordingWriter::run() {
  std::unique_lock lock(mutex_);
  while (changed_.wait(lock, [&] { return ending_ || !waiting_.empty(); }), !waiting_.empty()) {
    const auto& front = waiting_.front();  // stays where it is while others are pushed
    auto& index = indexes_.at(front.recording.rank);
    lock.unlock();
    const auto error = write(front.recording, index);
    lock.lock();
    note_written(error);
    changed_.notify_all();
    if (error) return;
  }
}

std::exception_ptr RecordingWriter::write(const StepRecording& r, IndexAppender& index) const {
  try {
    const auto bytes = to_file(r);
    const auto name = new_file_name(r);
    AtomicFile file(folder_ + "/" + name);
    file.write(bytes);
    file.commit();
    index.append({r.rank, r.world, digest(r.job), r.step, r.has_state, r.complete, bytes.size(), digest(bytes), name});
    return nullptr;
  } catch (...) {
    return std::current_exception();
  }
}

void RecordingWriter::note_written(const std::exception_ptr& error) {
  error_ = error;
  if (error) {
    waiting_.clear();
    return;
  }
  acknowledged_ = waiting_.front().recording.step;
  waiting_bytes_ -= waiting_.front().bytes;
  waiting_.pop_front();
}

std::string RecordingWriter::new_file_name(const StepRecording& r) const {
  for (int64_t times = 1;; ++times) {
    auto name = step_file_name(r.rank, r.step, times);
    if (!std::filesystem::exists(folder_ + "/" + name)) return name;
  }
}

}  // namespace lockstep::replay
