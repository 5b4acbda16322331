// Every fault of a rank ends the whole job, real processes over real transports, within the time that docs/processes.md
// promises, with exit code 4 and a report that says which rank, and which collective.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <ctime>

#include "core/sanitized.h"
#include "tests/tools/run_lockstep.h"

namespace lockstep {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;

constexpr int kTimeout = 1;  ///< comm.train_timeout_seconds
constexpr double kSanitizers = kSanitized ? 4 : 1;

/// One fault of the last rank, V.
struct Fault {
  const char* name;
  double seconds;     ///< within which the launcher has ended everything and reported
  const char* blame;  ///< in a report of four ranks
  int code = 4;
  const char* cause = nullptr;  ///< what V says before it ends, in another rank's words, too
};

constexpr const char* kDisagree =
    "rank [0-9] is at collective .*, the others? .rank [0-9]. at collective .*they disagree";
constexpr double kDeadSeconds = 5, kStalledSeconds = kTimeout + 2, kDisagreementSeconds = 1;

const Fault kFaults[] = {
    {"kill", kDeadSeconds, "rank V was killed by signal 9 .Killed. after collective"},
    {"abort", kDeadSeconds, "rank V was killed by signal 6 .Aborted. after collective"},
    {"exception", kDeadSeconds, "rank V failed .exit 1. after collective", 1, "a fault of this test"},
    {"index", kDeadSeconds, "rank V failed .exit 2. after collective", 2,
     "token 8 is outside of the vocabulary of 8 entries"},
    {"label", kDeadSeconds, "rank V failed .exit 2. after collective", 2,
     "cross-entropy: label 4 is none of the 4 classes"},
    {"probability", kDeadSeconds, "rank V failed .exit 2. after collective", 2,
     "bernoulli_: a probability is not in .0, 1."},
    {"closed", kDeadSeconds, "rank [0-9] and rank V have lost each other in collective"},
    {"stop", kStalledSeconds, "rank V is stopped .*; ranks? [0-9].* waited for it in collective"},
    {"slow", kStalledSeconds, "rank V is late after collective .*; ranks? [0-9].* waited for it in collective"},
    {"late", 60, "", 0},
    {"unready", 60, "", 0},  // twice that timeout in the first step, where comm.init_timeout_seconds holds
    {"op", kDisagreementSeconds, kDisagree},
    {"shape", kDisagreementSeconds, kDisagree},
    {"dtype", kDisagreementSeconds, kDisagree},
    {"group", kDisagreementSeconds, kDisagree},
    {"reordered", kDisagreementSeconds, kDisagree},
};

// NOLINTNEXTLINE(readability-identifier-naming): GoogleTest looks for this name
void PrintTo(const Fault& fault, std::ostream* out) { *out << fault.name; }

/// How many times as long as its processor time something takes now: 1 where the cores have nothing else to do. What is
/// promised is promised of such a machine.
double slowness() {
  const auto start = std::chrono::steady_clock::now();
  const auto used = [] {
    timespec time{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
  };
  const double before = used();
  while (used() - before < 0.05) continue;
  return std::max(1.0, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / 0.05);
}

class Faults : public ::testing::TestWithParam<std::tuple<int, const char*, Fault>> {
 protected:
  lockstep::Run launch() {
    const auto [processes, carrier, fault] = GetParam();
    return run_binary(LOCKSTEP_FAULT_PROGRAM, "launch " + std::to_string(processes) + " " + carrier + " " +
                                                  std::to_string(kTimeout) + " " + fault.name + " " + file());
  }
  std::string file() const { return folder_.file("time"); }

  double seconds_since_fault() const {
    const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
    return static_cast<double>(now - std::stoll(file_content(file()))) * 1e-9;
  }

  static std::string blame() {
    std::string text = std::get<2>(GetParam()).blame;
    for (size_t at = text.find('V'); at != text.npos; at = text.find('V'))
      text[at] = static_cast<char>('0' + std::get<0>(GetParam()) - 1);
    return text;
  }

  /// Of a rank that waits, not of the one that ended.
  static std::string passed_on(const std::string& cause) {
    return fmt::format("lockstep: rank [0-9] waits for rank [0-9]: rank {} ended by an error: {}",
                       std::get<0>(GetParam()) - 1, cause);
  }

  static void expect_table(const std::string& text) {
    EXPECT_THAT(text, HasSubstr("rank  last collective            on            of"));
    for (int rank = 0; rank < std::get<0>(GetParam()); ++rank)
      EXPECT_THAT(text, ContainsRegex("\n   " + std::to_string(rank) + " +[0-9]+  all_[gr].* s\n"));
  }

  /// Processes whose command line has this test's file.
  bool nothing_is_left() const {
    for (const auto& entry : std::filesystem::directory_iterator("/proc"))
      if (file_content(entry.path() / "cmdline").find(file()) != std::string::npos) return false;
    return true;
  }

  TemporaryFolder folder_;
};

TEST_P(Faults, EndTheJobInTimeWithAReport) {
  const auto& fault = std::get<2>(GetParam());
  const double before = slowness();
  const auto run = launch();
  const double seconds = seconds_since_fault();
  RecordProperty("seconds", std::to_string(seconds));
  EXPECT_EQ(run.code, fault.code) << run.err;
  EXPECT_LT(seconds, fault.seconds * kSanitizers * std::max(before, slowness())) << run.err;
  EXPECT_TRUE(nothing_is_left());
  if (fault.code == 0) return;
  EXPECT_THAT(run.err, ContainsRegex("lockstep: " + blame()));
  if (fault.cause) EXPECT_THAT(run.err, ContainsRegex(passed_on(fault.cause)));
  expect_table(run.err);
}

std::string name_of(const ::testing::TestParamInfo<Faults::ParamType>& tested) {
  const auto& [processes, carrier, fault] = tested.param;
  return std::to_string(processes) + "_" + carrier + "_" + fault.name;
}

INSTANTIATE_TEST_SUITE_P(OfTwo, Faults,
                         ::testing::Combine(::testing::Values(2), ::testing::Values("shared_memory", "gloo"),
                                            ::testing::ValuesIn(kFaults)),
                         name_of);
INSTANTIATE_TEST_SUITE_P(OfFour, Faults,
                         ::testing::Combine(::testing::Values(4), ::testing::Values("tcp"),
                                            ::testing::ValuesIn(kFaults)),
                         name_of);

}  // namespace
}  // namespace lockstep
