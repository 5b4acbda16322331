#include "tools/bench/rows/record_rows.h"

#include <ATen/Parallel.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>

#include "core/digest/tensor_digest.h"
#include "core/error.h"
#include "tools/bench/bench_run.h"
#include "trainer/recording/step_recorder.h"
#include "trainer/state/replicas.h"
#include "trainer/state/state_digest.h"

namespace lockstep::bench {
namespace {

namespace fs = std::filesystem;

constexpr PairedOptions kFewSteps{.pairs = 31, .seconds = 0};

/// A folder that goes when this does.
class ScratchFolder {
 public:
  ScratchFolder() : path_((fs::temp_directory_path() / fmt::format("lockstep-bench-{}", ::getpid())).string()) {}
  ~ScratchFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// The demo's size and mesh.
trainer::Job job_of(const std::string& payload, const std::string& folder) {
  auto job = bench_job({4, 128}, trainer::parse_mesh("dp_shard=2,tp=2"), Numerics::kCanonical);
  job.record.folder = folder;
  job.record.payload = payload;
  return job;
}

BenchRow price_of(const char* name, const std::string& payload) {
  const ScratchFolder folder;
  const auto job = job_of(payload, folder.path());
  trainer::TrainingRun::Options as_messages;
  as_messages.as_messages = true;
  BenchRun recorded(job, as_messages), plain(job_of(payload, ""));
  trainer::StepRecorder recorder(job, recorded.run());
  const auto ours = [&] {
    recorded();
    recorder.close_step();
  };
  auto row = make_row(name, time_in_pairs(ours, plain, kFewSteps), "unrecorded", "ms", 1e3);
  recorder.finish();
  return row;
}

/// What a save adds to the writing.
BenchRow state_digest_row() {
  BenchRun plain(job_of("none", ""));
  bool agree = true;
  const auto ours = [&] {
    trainer::state_digest(plain.run().state());
    agree &= trainer::replica_difference(plain.run().state(), {}).empty();
  };
  auto row = make_row("state_digest", time_in_pairs(ours, plain, kFewSteps), "a step", "ms", 1e3);
  LOCKSTEP_CHECK(agree);
  return row;
}

BenchRow digest_row() {
  const std::vector<std::byte> bytes(1 << 20, std::byte{7});
  std::vector<std::byte> copy(bytes.size());
  Digest sum;
  const auto ours = [&] { sum = tensor_digest(bytes); };
  const auto peer = [&] { std::memcpy(copy.data(), bytes.data(), bytes.size()); };
  return make_row("digest_1MiB", time_in_pairs(ours, peer), "memcpy", "us", 1e6);
}

}  // namespace

std::vector<BenchRow> record_rows() {
  at::set_num_threads(1);
  return {digest_row(), state_digest_row(), price_of("record_digests", "none"), price_of("record_ring_2", "ring:2"),
          price_of("record_all", "all")};
}

}  // namespace lockstep::bench
