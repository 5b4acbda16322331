// SIGINT and SIGTERM at any moment of a run, from the first line of main to the last: exit code 6 and a line that says
// so, or 0 when the run was through; never death by the signal. LOCKSTEP_SOAK sends 200 of each kind, a normal run few.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/tools/run_lockstep.h"
#include "tests/tools/small_job.h"
#include "tests/tools/spawned.h"

namespace lockstep {
namespace {

using std::chrono::duration;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using Clock = std::chrono::steady_clock;

constexpr double kPatience = 60;

int signals_to_send() { return std::getenv("LOCKSTEP_SOAK") ? 200 : 6; }

/// Moments that fill [0, 1) evenly, however many are asked for.
double moment(int i) { return std::fmod(i * 0.6180339887498949, 1); }

class Signals : public ::testing::Test {
 protected:
  struct End {
    int code;
    std::string err;
  };

  std::vector<std::string> train(const std::string& steps) const {
    return {LOCKSTEP_BINARY, "train", job_, "-q", "--json", json_, "--training.steps", steps};
  }
  std::vector<std::string> launch(const std::string& steps) const {
    return {LOCKSTEP_BINARY, "launch", "-n", "2", "train", job_, "-q", "--json", json_, "--training.steps", steps};
  }

  End end_of(const std::vector<std::string>& command, int signal, double after) {
    std::filesystem::remove(json_);
    std::filesystem::remove_all(folder_.file("out"));
    const auto err = folder_.file("err");
    Spawned run(command, write_to("/dev/null"), write_to(err));
    std::this_thread::sleep_for(duration<double>(after));
    run.signal(signal);
    const int code = run.code(kPatience);
    return {code, file_content(err)};
  }

  double seconds_of(const std::vector<std::string>& command) {
    const auto start = Clock::now();
    EXPECT_EQ(end_of(command, 0, 0).code, 0);
    return duration<double>(Clock::now() - start).count();
  }

  /// Nobody died of the signal.
  void expect_ranks_ended_by_themselves() const {
    if (!std::filesystem::exists(json_)) return;  // interrupted before there were ranks
    const auto result = nlohmann::json::parse(file_content(json_));
    ASSERT_TRUE(result.contains("ranks"));
    for (const auto& rank : result.at("ranks")) EXPECT_THAT(rank.at("exit"), ::testing::AnyOf(0, 4, 6)) << rank;
  }

  TemporaryFolder folder_;
  std::string job_ = write_small_job(folder_), json_ = folder_.file("result.json");
};

int signal_of(int i) { return i % 2 == 0 ? SIGTERM : SIGINT; }

TEST_F(Signals, EndALongRunWithExitSix) {
  const double start_takes = seconds_of(train("1"));
  for (int i = 0; i < signals_to_send(); ++i) {
    const double after = 1.5 * start_takes * moment(i);
    const auto end = end_of(train("100000000"), signal_of(i), after);
    const std::string name = signal_of(i) == SIGTERM ? "SIGTERM" : "SIGINT";
    EXPECT_EQ(end.code, 6) << after << " s: " << end.err;
    EXPECT_THAT(end.err, MatchesRegex("lockstep: " + name +
                                      ": (ended; there was nothing to save\\.|stopped after step [0-9]+; the state is "
                                      "in .* goes on)\n"))
        << after << " s";
  }
}

TEST_F(Signals, AtTheEndOfARunAreTooLateOrTold) {
  const double takes = seconds_of(train("4"));
  for (int i = 0; i < signals_to_send(); ++i) {
    const double after = takes * (0.5 + 0.6 * moment(i));
    const auto end = end_of(train("4"), signal_of(i), after);
    EXPECT_THAT(end.code, ::testing::AnyOf(0, 6)) << after << " s: " << end.err;
    if (end.code == 0) {
      EXPECT_EQ(nlohmann::json::parse(file_content(json_)).at("steps").size(), 4U) << after << " s";
    }
    if (end.code == 6) {
      EXPECT_THAT(end.err, HasSubstr("lockstep: SIG")) << after << " s";
    }
  }
}

TEST_F(Signals, EndALongLaunchWithExitSix) {
  const double start_takes = seconds_of(launch("1"));
  for (int i = 0; i < signals_to_send(); ++i) {
    const double after = 1.5 * start_takes * moment(i);
    const auto end = end_of(launch("100000000"), signal_of(i), after);
    EXPECT_THAT(end.code, ::testing::AnyOf(6, 4)) << after << " s: " << end.err;
    EXPECT_THAT(end.err, HasSubstr(signal_of(i) == SIGTERM ? "SIGTERM" : "SIGINT")) << after << " s";
    expect_ranks_ended_by_themselves();
  }
}

/// A copy of `lockstep` with an engine of the test's.
class WithEngine : public Signals {
 protected:
  std::string with_engine(const std::string& script) const {
    namespace fs = std::filesystem;
    fs::copy_file(LOCKSTEP_BINARY, folder_.file("lockstep"));
    fs::permissions(folder_.write("lockstep-engine", "#!/bin/sh\n" + script), fs::perms::owner_all);
    return folder_.file("lockstep");
  }
};

TEST_F(WithEngine, OneRankThatIsInterruptedBeforeTheMeetingEndsTheOthers) {
  const auto real = std::filesystem::path(LOCKSTEP_BINARY).parent_path() / "lockstep-engine";
  auto command = launch("1");
  command[0] = with_engine("[ \"$RANK\" = 1 ] && exit 6\nexec '" + real.string() + "' \"$@\"\n");
  const auto start = Clock::now();
  const auto end = end_of(command, 0, 0);
  EXPECT_EQ(end.code, 6) << end.err;
  EXPECT_THAT(end.err, HasSubstr("lockstep: SIGTERM: ended; there was nothing to save.\n"));
  EXPECT_LT(Clock::now() - start, duration<double>(kPatience)) << "comm.init_timeout_seconds is 300";
}

TEST_F(WithEngine, ASecondSignalEndsALaunchAtOnce) {
  auto command = launch("1");
  command[0] = with_engine("echo $$ >" + folder_.file("begun") + "$RANK\nexec sleep 300\n");
  Spawned run(command, write_to("/dev/null"), write_to(folder_.file("err")));
  for (const auto* rank : {"0", "1"})
    while (file_content(folder_.file("begun") + rank).empty()) ASSERT_FALSE(run.wait(duration<double>(0.01)));
  run.signal(SIGINT);
  EXPECT_FALSE(run.wait(duration<double>(1.2))) << "the ranks are waited for";
  run.signal(SIGINT);
  EXPECT_EQ(run.code(2), 6);
  EXPECT_EQ(file_content(folder_.file("err")),
            "lockstep: SIGINT came again: ended at once; what was not saved yet is lost.\n");
}

TEST_F(WithEngine, SignalsWaitWhileTheEngineIsLoaded) {
  const auto run = run_binary(with_engine("exec grep SigBlk /proc/self/status\n"), "rules --missing");
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_EQ(run.out, "SigBlk:\t0000000000004002\n") << "SIGINT is 2, SIGTERM 15";
}

}  // namespace
}  // namespace lockstep
