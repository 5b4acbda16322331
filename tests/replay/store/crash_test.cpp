// A process that records is killed (SIGKILL) at random moments: what it called acknowledged is there, whole and the
// same, and the next process goes on in the same folder. LOCKSTEP_SOAK kills 200, a normal run 20.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <map>
#include <random>

#include "core/files/file_descriptor.h"
#include "replay/store/recording_folder.h"
#include "tests/support/recorded_steps.h"
#include "tests/support/temporary_folder.h"

namespace lockstep::replay {
namespace {

using lockstep::testing::add_payload;
using lockstep::testing::record;
using lockstep::testing::step_of;
using ::testing::IsEmpty;

/// What a process recorded: a step, and which version of it.
struct Acknowledged {
  int64_t step = 0;
  uint64_t seed = 0;
};

/// Every third one is so large that a kill is likely to hit its writing.
StepRecording step_to_record(const Acknowledged& what) {
  auto recording = step_of(what.step, what.step % 4 == 0, what.seed);
  if (what.step % 3 == 0) add_payload(recording, 3 << 20);
  return recording;
}

/// Records from `first` on until it is killed, and tells of every step once it is acknowledged.
[[noreturn]] void record_forever(const std::string& folder, int64_t first, uint64_t seed, int pipe) {
  RecordingWriter writer(folder, 1 << 20);
  for (auto step = first;; ++step) {
    writer.push(step_to_record({step, seed}));
    writer.finish();
    const Acknowledged done{writer.acknowledged(), seed};
    if (::write(pipe, &done, sizeof(done)) != sizeof(done)) ::_exit(1);
  }
}

/// Lets a process record for so long, kills it, and returns what it had acknowledged.
std::vector<Acknowledged> record_and_kill(const std::string& folder, int64_t first, uint64_t seed, useconds_t delay) {
  int ends[2];
  EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const FileDescriptor reading(ends[0]);
  FileDescriptor writing(ends[1]);
  const pid_t child = ::fork();
  if (child == 0) record_forever(folder, first, seed, writing.get());
  writing.reset();
  ::usleep(delay);
  ::kill(child, SIGKILL);
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << "it ended by itself: " << status;
  std::vector<Acknowledged> acknowledged;
  for (Acknowledged one; ::read(reading.get(), &one, sizeof(one)) == sizeof(one);) acknowledged.push_back(one);
  return acknowledged;
}

class CrashTest : public ::testing::Test {
 protected:
  /// Kills one process that begins at `first`, and compares the folder with what is known of it.
  void kill_one(int64_t first, uint64_t seed, useconds_t delay) {
    const auto acknowledged = record_and_kill(folder_.path(), first, seed, delay);
    for (const auto& one : acknowledged) seeds_[one.step] = one.seed;
    acknowledged_ += acknowledged.size();
    if (seeds_.empty()) return;  // there may be no index yet
    const RecordingFolder recording(folder_.path());
    ASSERT_THAT(recording.damage(), IsEmpty());
    for (const auto& one : acknowledged) ASSERT_NO_FATAL_FAILURE(expect_there(recording, one, seed));
  }

  void expect_there(const RecordingFolder& recording, const Acknowledged& one, uint64_t seed) {
    const auto steps = recording.steps(3);
    ASSERT_TRUE(std::find(steps.begin(), steps.end(), one.step) != steps.end()) << "step " << one.step << " is lost";
    ASSERT_TRUE(recording.read(3, one.step) == step_to_record({one.step, seed})) << "step " << one.step << " differs";
  }

  /// All that were acknowledged by anybody, in that version or in a later one whose process had no time to tell.
  void expect_all_there(uint64_t last_seed) {
    const RecordingFolder recording(folder_.path());
    for (const auto& [step, seed] : seeds_) {
      const auto read = recording.read(3, step);
      bool known = false;
      for (auto later = seed; later <= last_seed && !known; ++later) known = read == step_to_record({step, later});
      EXPECT_TRUE(known) << "step " << step << " is none that was recorded since " << seed;
    }
  }

  TemporaryFolder folder_;
  std::map<int64_t, uint64_t> seeds_;
  std::size_t acknowledged_ = 0;
};

TEST_F(CrashTest, NoAcknowledgedStepIsLost) {
  const int kills = std::getenv("LOCKSTEP_SOAK") != nullptr ? 200 : 20;
  std::mt19937_64 engine(std::random_device{}());
  for (int kill = 0; kill < kills; ++kill) {
    const auto last = seeds_.empty() ? -1 : seeds_.rbegin()->first;
    const auto again = kill % 5 == 4 ? std::min<int64_t>(last, 2) : 0;  // some steps are recorded again
    const auto delay = std::uniform_int_distribution<useconds_t>(0, kill == 0 ? 2'000'000 : 150'000)(engine);
    SCOPED_TRACE(fmt::format("kill {} after {} us, from step {}", kill, delay, last + 1 - again));
    ASSERT_NO_FATAL_FAILURE(kill_one(last + 1 - again, static_cast<uint64_t>(kill), delay));
  }
  ASSERT_GT(acknowledged_, 0U) << "every process was killed too early";
  expect_all_there(static_cast<uint64_t>(kills));
  std::printf("%d kills, %zu steps acknowledged, none lost; %zu leftovers\n", kills, acknowledged_,
              RecordingFolder(folder_.path()).leftovers().size());
  record(folder_.path(), {step_of(100'000, true)});
  EXPECT_THAT(RecordingFolder(folder_.path()).damage(), IsEmpty());
}

}  // namespace
}  // namespace lockstep::replay
