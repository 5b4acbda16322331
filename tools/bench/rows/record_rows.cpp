#include "tools/bench/rows/record_rows.h"

#include <ATen/Parallel.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <filesystem>

#include "core/digest/tensor_digest.h"
#include "core/error.h"
#include "tools/bench/bench_run.h"
#include "trainer/recording/step_recorder.h"
#include "trainer/state/background_save.h"
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

/// Twenty steps of a run that saves beside them, after the last of the twenty, and of one that never does.
BenchRow background_save_row() {
  constexpr int kSteps = 20;
  constexpr PairedOptions kFewSaves{.pairs = 7, .seconds = 0};
  const ScratchFolder folder;
  BenchRun saving(job_of("none", "")), plain(job_of("none", ""));
  trainer::BackgroundSave save(saving.run().mesh());
  int64_t saves = 0;
  double waited = 0, all = 0;
  const auto seconds = [](auto start) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  const auto ours = [&] {
    const auto start = std::chrono::steady_clock::now();
    for (int step = 0; step < kSteps; ++step) {
      saving();
      if (save.has_news()) save.meet();
    }
    const auto before_save = std::chrono::steady_clock::now();
    LOCKSTEP_CHECK(trainer::replica_difference(saving.run().state(), {}).empty());
    save.begin(folder.path(), {.step = ++saves}, saving.run().state(), {});
    waited += seconds(before_save), all += seconds(start);
  };
  const auto peer = [&] {
    for (int step = 0; step < kSteps; ++step) plain();
  };
  auto row = make_row("save_every_20_steps", time_in_pairs(ours, peer, kFewSaves), "no saves", "ms", 1e3);
  save.finish();
  row.facts["share_waited"] = waited / all;
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
  return {digest_row(),
          state_digest_row(),
          background_save_row(),
          price_of("record_digests", "none"),
          price_of("record_ring_2", "ring:2"),
          price_of("record_all", "all")};
}

}  // namespace lockstep::bench
