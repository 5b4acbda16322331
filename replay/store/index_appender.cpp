#include "replay/store/index_appender.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "core/error.h"
#include "core/files/disk.h"

namespace lockstep::replay {

IndexAppender::IndexAppender(const std::string& folder, int32_t rank, int32_t world, const Digest& job)
    : path_(folder + "/" + index_file_name(rank)), rank_(rank), world_(world), job_(job) {
  open(folder);
  const auto index = read_index(path_, rank);
  require_same_run(index);
  struct stat status {};
  if (::fstat(file_.get(), &status) != 0) failed("cannot be read");
  size_ = status.st_size - static_cast<int64_t>(index.torn);
  if (index.torn > 0) cut(size_);
}

void IndexAppender::open(const std::string& folder) {
  file_.reset(::open(path_.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
  if (!file_.is_open()) failed("cannot be written");
  if (::flock(file_.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) failed("cannot be locked");
    fail<BadInput>("{} is being written by another run. Record into another folder.", path_);
  }
  if (flush_folder(folder) != 0) failed("cannot be flushed to the disk");
}

void IndexAppender::require_same_run(const Index& index) const {
  if (index.entries.empty()) return;
  const auto& first = index.entries.front();
  if (first.world != world_)
    fail<BadInput>("{} is of {} ranks, this run has {}. Record into another folder.", path_, first.world, world_);
  if (first.job != job_)
    fail<BadInput>("{} is of another job (digest {}, this one's is {}). Record into another folder.", path_,
                   first.job.text(), job_.text());
}

void IndexAppender::append(const IndexEntry& entry) {
  LOCKSTEP_CHECK(entry.rank == rank_ && entry.world == world_ && entry.job == job_, "a step of another run in {}",
                 path_);
  const auto line = index_line(entry);
  if (write_all(file_.get(), std::as_bytes(std::span(line))) != 0 || ::fdatasync(file_.get()) != 0) {
    const int reason = errno;
    if (::ftruncate(file_.get(), size_) != 0) file_.reset();  // nothing may be appended to half a line
    errno = reason;
    failed("cannot be written");
  }
  size_ += static_cast<int64_t>(line.size());
}

void IndexAppender::cut(int64_t size) {
  if (::ftruncate(file_.get(), size) != 0 || ::fsync(file_.get()) != 0) failed("cannot be written");
}

void IndexAppender::failed(std::string_view what) const {
  const int reason = errno;
  fail<FileError>("{} {}: {}", path_, what, std::generic_category().message(reason));
}

}  // namespace lockstep::replay
