// Traces of processes: each writes its own, and the line names one of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/tools/run_lockstep.h"
#include "tests/tools/small_job.h"

namespace lockstep {
namespace {

TEST(Profile, OfProcessesSaysWhatEachWaitedFor) {
  const TemporaryFolder folder;
  const auto job = write_small_job(folder);
  const auto run =
      run_lockstep("launch -n 2 train " + job +
                   " --profiling.enable_profiling true --profiling.profile_freq 3 --profiling.save_traces_folder t");
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.out, ::testing::ContainsRegex("profiled  step 3: slowest rank [01]: [0-9.]+ ms of its own, all ranks "
                                                "[0-9.]+ ms in the mean; slowest op [A-Za-z_.:]+: .* on rank [01]; "));
  for (int rank = 0; rank < 2; ++rank) {
    const auto path = folder.file("out/t/iteration_3/rank" + std::to_string(rank) + "_trace.json");
    const auto json = nlohmann::json::parse(file_content(path));
    size_t waits = 0;
    for (const auto& event : json.at("traceEvents")) {
      EXPECT_EQ(event.at("pid"), rank);
      if (!event.contains("args") || !event.at("args").contains("waited_us")) continue;
      ++waits;
      EXPECT_LE(event.at("args").at("waited_us").get<double>(), event.at("dur").get<double>());
    }
    EXPECT_GE(waits, 3U);
  }
}

}  // namespace
}  // namespace lockstep
