#include "replay/view/chrome_trace.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/replay/view/sample_step.h"

namespace lockstep::replay {
namespace {

using nlohmann::json;

/// Of those with this name, by rank and track.
std::vector<json> events_named(const json& trace, const std::string& name) {
  std::vector<json> found;
  for (const auto& event : trace.at("traceEvents"))
    if (event.at("name") == name) found.push_back(event);
  return found;
}

TEST(ChromeTrace, HasATrackOfOpsAndOneOfCollectivesForEachRank) {
  std::vector<StepRecording> ranks;
  for (int rank = 0; rank < 3; ++rank)
    ranks.push_back(lockstep::testing::SampleStep(rank, 3)
                        .op("linear", 2000, 5000)
                        .collective(CollectiveKind::kAllGather, "tp", 6000, 9000, 40 + static_cast<uint64_t>(rank))
                        .recording);
  const auto trace = json::parse(chrome_trace(ranks));
  EXPECT_EQ(trace.at("displayTimeUnit"), "ms");
  const auto processes = events_named(trace, "process_name"), tracks = events_named(trace, "thread_name");
  const auto ops = events_named(trace, "linear"), collectives = events_named(trace, "all_gather tp");
  ASSERT_EQ(processes.size(), 3u);
  ASSERT_EQ(tracks.size(), 6u);
  ASSERT_EQ(ops.size(), 3u);
  ASSERT_EQ(collectives.size(), 3u);
  for (size_t rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(processes[rank].at("pid"), rank);
    EXPECT_EQ(processes[rank].at("args").at("name"), "rank " + std::to_string(rank));
    const auto &of_ops = tracks[2 * rank], &of_collectives = tracks[2 * rank + 1];
    EXPECT_EQ(of_ops.at("args").at("name"), "ops");
    EXPECT_EQ(of_collectives.at("args").at("name"), "collectives");
    for (const auto* event : {&of_ops, &of_collectives, &ops[rank], &collectives[rank]})
      EXPECT_EQ(event->at("pid"), rank);
    EXPECT_EQ(ops[rank].at("tid"), of_ops.at("tid"));
    EXPECT_EQ(collectives[rank].at("tid"), of_collectives.at("tid"));
    EXPECT_NE(of_ops.at("tid"), of_collectives.at("tid"));
    EXPECT_EQ(ops[rank].at("ts"), 2.0);
    EXPECT_EQ(ops[rank].at("dur"), 3.0);
    EXPECT_EQ(collectives[rank].at("args").at("received_bytes"), 40 + rank);
    EXPECT_EQ(collectives[rank].at("args").at("number"), 0);
  }
}

TEST(ChromeTrace, SaysHowLongCollectivesWaitedWhereThatIsKnown) {
  const std::vector<StepRecording> ranks{lockstep::testing::SampleStep(0, 2)
                                             .collective(CollectiveKind::kAllGather, "tp", 6000, 9000, 8)
                                             .collective(CollectiveKind::kAllReduce, "tp", 9000, 9500, 8)
                                             .recording};
  const std::vector<std::vector<uint64_t>> waited{{2500, 125}};
  const auto trace = json::parse(chrome_trace(ranks, waited)), without = json::parse(chrome_trace(ranks));
  EXPECT_EQ(events_named(trace, "all_gather tp").at(0).at("args").at("waited_us"), 2.5);
  EXPECT_EQ(events_named(trace, "all_reduce tp").at(0).at("args").at("waited_us"), 0.125);
  EXPECT_FALSE(events_named(without, "all_gather tp").at(0).at("args").contains("waited_us"));
}

}  // namespace
}  // namespace lockstep::replay
