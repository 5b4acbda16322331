// A recorder that dies at each of its calls that change the disk: before it, in the middle of it, after it. This
// binary's own write(), fsync() ... stand before the system's and count.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <mutex>

#include "core/files/file_descriptor.h"
#include "replay/store/recording_folder.h"
#include "tests/support/recorded_steps.h"
#include "tests/support/temporary_folder.h"

namespace {

enum class Moment { kBefore, kMiddle, kAfter };

struct CrashPoint {
  std::atomic<int> calls_left{-1};  // below 0: never
  std::mutex mutex;
  std::vector<std::string> calls;
  Moment moment = Moment::kBefore;
} crash_point;

void note_call(const char* name) {
  const std::lock_guard lock(crash_point.mutex);
  crash_point.calls.emplace_back(name);
}

/// Runs `call`, a system call of which `half` does a part, unless the process dies.
template <class Call, class Half>
long counted(const char* name, const Call& call, const Half& half) {
  note_call(name);
  const bool dies = crash_point.calls_left.load() >= 0 && crash_point.calls_left-- == 0;
  if (dies && crash_point.moment == Moment::kMiddle) half();
  if (dies && crash_point.moment != Moment::kAfter) ::kill(::getpid(), SIGKILL);
  const auto result = call();
  if (dies) ::kill(::getpid(), SIGKILL);
  return result;
}

long counted_whole(const char* name, const auto& call) {
  return counted(name, call, [] {});
}

}  // namespace

extern "C" {
ssize_t write(int descriptor, const void* data, size_t size) {
  const auto part = [&](size_t count) { return ::syscall(SYS_write, descriptor, data, count); };
  return counted(
      "write", [&] { return part(size); }, [&] { part(size / 2); });
}
int fsync(int descriptor) {
  return static_cast<int>(counted_whole("fsync", [&] { return ::syscall(SYS_fsync, descriptor); }));
}
int fdatasync(int descriptor) {
  return static_cast<int>(counted_whole("fdatasync", [&] { return ::syscall(SYS_fdatasync, descriptor); }));
}
int rename(const char* from, const char* to) noexcept {
  return static_cast<int>(
      counted_whole("rename", [&] { return ::syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0); }));
}
int ftruncate(int descriptor, off_t size) noexcept {
  return static_cast<int>(counted_whole("ftruncate", [&] { return ::syscall(SYS_ftruncate, descriptor, size); }));
}
}

namespace lockstep::replay {
namespace {

using lockstep::testing::record;
using lockstep::testing::step_of;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// Records steps 1 and 2 in a process that dies in its call number `call`. Returns the last step that it acknowledged,
/// 0 if there was none.
int64_t record_until(const std::string& folder, int call, Moment moment) {
  int ends[2];
  EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const FileDescriptor reading(ends[0]);
  FileDescriptor writing(ends[1]);
  const pid_t child = ::fork();
  if (child == 0) {
    crash_point.moment = moment;
    crash_point.calls_left = call;
    RecordingWriter writer(folder, 1 << 20);
    for (const int64_t step : {1, 2}) {
      writer.push(step_of(step, true));
      writer.finish();
      ::syscall(SYS_write, writing.get(), &step, sizeof(step));
    }
    ::_exit(0);
  }
  writing.reset();
  int64_t last = 0;
  for (int64_t step = 0; ::read(reading.get(), &step, sizeof(step)) == sizeof(step);) last = step;
  ::waitpid(child, nullptr, 0);
  return last;
}

/// The calls that recording these steps takes.
std::vector<std::string> calls_of(const std::vector<StepRecording>& steps) {
  const TemporaryFolder folder;
  crash_point.calls.clear();
  record(folder.path(), steps);
  return crash_point.calls;
}

/// What was acknowledged is there, and another process goes on.
void check_folder(const TemporaryFolder& folder, int64_t last) {
  if (std::filesystem::exists(folder.file("rank3.index"))) {
    const RecordingFolder recording(folder.path());
    EXPECT_THAT(recording.damage(), IsEmpty());
    for (int64_t step = 1; step <= last; ++step) EXPECT_TRUE(recording.read(3, step) == step_of(step, true));
    for (const auto step : recording.steps(3)) EXPECT_TRUE(recording.read(3, step) == step_of(step, true));
  } else {
    EXPECT_EQ(last, 0);
  }
  record(folder.path(), {step_of(2, true), step_of(3, true)});
  const RecordingFolder recording(folder.path());
  EXPECT_THAT(recording.damage(), IsEmpty());
  for (const auto step : recording.steps(3)) EXPECT_TRUE(recording.read(3, step) == step_of(step, true));
  EXPECT_GE(recording.steps(3).size(), 2U);
}

/// A power cut is not tried; that everything is flushed in this order is what survives one.
TEST(CrashPoints, AFileIsFlushedBeforeItsNameAndBothBeforeTheIndex) {
  EXPECT_THAT(calls_of({step_of(1, true)}), ElementsAre("fsync",  // the folder: the new index is in it
                                                        "write", "fsync", "rename", "fsync",  // the file, its folder
                                                        "write", "fdatasync"));               // the index
}

TEST(CrashPoints, NoAcknowledgedStepIsLostWhereverTheRecorderDies) {
  const auto calls = static_cast<int>(calls_of({step_of(1, true), step_of(2, true)}).size());
  ASSERT_GE(calls, 12);  // per step: write, flush, rename, flush of the folder; write, flush of the index
  int64_t acknowledged = 0;
  for (int call = 0; call < calls; ++call)
    for (const auto moment : {Moment::kBefore, Moment::kMiddle, Moment::kAfter}) {
      SCOPED_TRACE(fmt::format("call {}, moment {}", call, static_cast<int>(moment)));
      const TemporaryFolder folder;
      const auto last = record_until(folder.path(), call, moment);
      acknowledged += last;
      EXPECT_LT(last, 2);
      check_folder(folder, last);
    }
  EXPECT_GE(acknowledged, calls);  // the second half of the calls, three times
  std::printf("%d calls that change the disk, killed before, in and after each\n", calls);
}

}  // namespace
}  // namespace lockstep::replay
