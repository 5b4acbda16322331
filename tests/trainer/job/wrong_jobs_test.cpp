// Jobs that nobody meant to write: each is refused by a BadInput of lines that name their place, or is a job. Never
// anything else. LOCKSTEP_SOAK tries 100,000.
#include <gtest/gtest.h>

#include "core/error.h"
#include "tests/support/mutations.h"
#include "tests/support/temporary_folder.h"
#include "trainer/job/batching.h"
#include "trainer/job/job_file.h"

namespace lockstep::trainer {
namespace {

void expect_lines_with_places(const std::string& message) {
  std::istringstream lines(message);
  for (std::string line; std::getline(lines, line);)
    EXPECT_TRUE(line.starts_with("job.toml:") || line.starts_with("command line: ")) << line;
}

/// Whose numbers have to fit each other.
constexpr auto kFitting =
    "[parallelism]\ndata_parallel_shard_degree = 3\ndata_parallel_replicate_degree = 2\n[training]\nlocal_batch_size = "
    "2\n"
    "global_batch_size = 36\nseq_len = 64\n";

TEST(WrongJobs, AreRefusedOrJobs) {
  const auto demo = file_content(LOCKSTEP_SOURCE_DIR "/jobs/demo.toml");
  ASSERT_FALSE(demo.empty());
  const auto whole = to_toml(parse_job(demo, "job.toml"));
  const int count = std::getenv("LOCKSTEP_SOAK") ? 100'000 : 4'000;
  int refused = 0, accepted = 0, unresolved = 0;
  for (int i = 0; i < count; ++i) {
    testing::Mutations mutations(static_cast<uint64_t>(i));
    const auto text = mutations.changed(i % 3 == 0 ? demo : i % 3 == 1 ? whole : kFitting);
    SCOPED_TRACE("seed " + std::to_string(i));
    try {
      const auto job = parse_job(text, "job.toml");
      ++accepted;
      try {
        const auto resolved = resolve(job, {});
        derive_batching(resolved, mesh_of(resolved));
      } catch (const BadInput&) {
        ++unresolved;
      }
    } catch (const BadInput& error) {
      ++refused;
      expect_lines_with_places(error.what());
    }
  }
  EXPECT_EQ(refused + accepted, count);
  EXPECT_GT(refused, count / 10);
  EXPECT_GT(accepted, count / 100);
  EXPECT_GT(unresolved, 0);
}

}  // namespace
}  // namespace lockstep::trainer
