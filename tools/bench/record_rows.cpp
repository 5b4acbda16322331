#include "tools/bench/record_rows.h"

#include <ATen/Parallel.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>

#include "core/digest.h"
#include "core/error.h"
#include "trainer/step_recorder.h"

namespace lockstep::bench {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kVocabulary = 2048, kRows = 4, kLength = 128;
constexpr PairedOptions kFewSteps{.pairs = 11, .seconds = 0};

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

trainer::Job job_of(const std::string& payload, const std::string& folder) {
  trainer::Job job;
  job.training.global_batch_size = kRows;
  job.training.local_batch_size = kRows / 2;
  job.training.seq_len = kLength;
  job.parallelism.data_parallel_shard_degree = 2;
  job.parallelism.tensor_parallel_degree = 2;
  job.record.folder = folder;
  job.record.payload = payload;
  return job;
}

trainer::TokenBatch token_batch() {
  trainer::TokenBatch batch{kRows, kLength, {}, {}};
  for (int64_t i = 0; i < kRows * kLength; ++i) {
    batch.tokens.push_back(i * 7919 % kVocabulary);
    batch.labels.push_back((i + 1) * 7919 % kVocabulary);
  }
  return batch;
}

class Run {
 public:
  explicit Run(const trainer::Job& job)
      : run_(job, {.mesh = trainer::mesh_of(job), .as_messages = !job.record.folder.empty()}), batch_(token_batch()) {}
  void operator()() { run_.step(++step_, batch_, 1e-3); }
  trainer::TrainingRun& run() { return run_; }

 private:
  trainer::TrainingRun run_;
  trainer::TokenBatch batch_;
  int64_t step_ = 0;
};

BenchRow price_of(const char* name, const std::string& payload) {
  const ScratchFolder folder;
  const auto job = job_of(payload, folder.path());
  Run recorded(job), plain(job_of(payload, ""));
  trainer::StepRecorder recorder(job, recorded.run());
  const auto ours = [&] {
    recorded();
    recorder.close_step();
  };
  auto row = make_row(name, time_in_pairs(ours, plain, kFewSteps), "unrecorded", "ms", 1e3);
  recorder.finish();
  return row;
}

BenchRow digest_row() {
  const std::vector<std::byte> bytes(1 << 20, std::byte{7});
  std::vector<std::byte> copy(bytes.size());
  Digest sum;
  const auto ours = [&] { sum = digest(std::span(bytes)); };
  const auto peer = [&] { std::memcpy(copy.data(), bytes.data(), bytes.size()); };
  return make_row("digest_1MiB", time_in_pairs(ours, peer), "memcpy", "us", 1e6);
}

}  // namespace

std::vector<BenchRow> record_rows() {
  at::set_num_threads(1);
  return {digest_row(), price_of("record_digests", "none"), price_of("record_ring_2", "ring:2"),
          price_of("record_all", "all")};
}

}  // namespace lockstep::bench
