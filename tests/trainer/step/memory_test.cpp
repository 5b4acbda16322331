// What a rank holds at the peak of a step, by its layout, by what is recomputed and by its part of a sequence: measured
// by an allocator that counts.
#include <c10/core/CPUAllocator.h>
#include <gtest/gtest.h>

#include <mutex>
#include <unordered_map>

#include "tests/support/small_models.h"
#include "trainer/step/training_run.h"

namespace lockstep::trainer {
namespace {

/// Counts the bytes of all CPU tensors that are alive, and their peak. Installed for good: tensors made under it may
/// outlive the test.
class CountingAllocator final : public c10::Allocator {
 public:
  static CountingAllocator& instance() {
    static auto* allocator = new CountingAllocator(c10::GetCPUAllocator());
    static const bool installed = (c10::SetCPUAllocator(allocator, /*priority=*/1), true);
    (void)installed;
    return *allocator;
  }

  c10::DataPtr allocate(size_t bytes) override {
    void* memory = inner_->raw_allocate(bytes);
    const std::lock_guard lock(mutex_);
    if (memory) sizes_[memory] = bytes;
    live_ += bytes;
    peak_ = std::max(peak_, live_);
    return {memory, memory, &release, c10::Device(c10::kCPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void* to, const void* from, size_t bytes) const override { inner_->copy_data(to, from, bytes); }

  double live() const { return static_cast<double>(live_); }
  double peak() const { return static_cast<double>(peak_); }
  void start() { peak_ = live_; }

 private:
  explicit CountingAllocator(c10::Allocator* inner) : inner_(inner) {}

  static void release(void* memory) {
    auto& self = instance();
    {
      const std::lock_guard lock(self.mutex_);
      const auto found = self.sizes_.find(memory);
      if (found != self.sizes_.end()) {
        self.live_ -= found->second;
        self.sizes_.erase(found);
      }
    }
    self.inner_->raw_deallocate(memory);
  }

  c10::Allocator* inner_;
  std::mutex mutex_;
  std::unordered_map<void*, size_t> sizes_;
  size_t live_ = 0, peak_ = 0;
};

constexpr int64_t kLayers = 8, kWidth = 96, kHidden = 192, kVocabulary = 16;
constexpr double kBlockBytes = 4.0 * (4.0 * kWidth * kWidth + 3.0 * kWidth * kHidden + 2 * kWidth);

std::unique_ptr<models::Model> deep_llama() {
  models::LlamaOptions options;
  options.width = kWidth;
  options.layers = kLayers;
  options.heads = options.key_value_heads = 4;
  options.hidden = kHidden;
  options.vocabulary = kVocabulary;
  options.length = 2;
  return std::make_unique<models::Llama>(options);
}

/// Of a run's second step: bytes at the peak beyond those before it.
double bytes_at_peak(const Job& job, TrainingRun& run) {
  auto& memory = CountingAllocator::instance();
  const auto batch = testing::batch_for(job, 1, kVocabulary);
  run.step(1, batch, 1e-3);
  const auto before = memory.live();
  memory.start();
  run.step(2, batch, 1e-3);
  return memory.peak() - before;
}

struct Peak {
  double bytes;      ///< beyond those before the step
  double gradients;  ///< bytes of one gradient of every parameter, cut over the ranks
};

/// Of a step of so many microbatches of one sample on each rank.
Peak peak_of_step(Job job, int64_t ranks, int64_t microbatches) {
  CountingAllocator::instance();  // before the run has tensors
  job.training.seq_len = 2;
  job.training.local_batch_size = 1;
  job.training.global_batch_size = ranks * microbatches;
  TrainingRun::Options options;
  options.as_messages = true;  // each rank holds what it received
  options.mesh = parse_mesh(fmt::format("dp_shard={}", ranks));
  options.make_model = deep_llama;
  TrainingRun run(job, options);
  return {bytes_at_peak(job, run), 4.0 * static_cast<double>(run.model().parameter_count())};
}

/// Bytes at the peak of a step beyond those before it and the gradients' shards, in gathered blocks per rank.
double blocks_at_peak(const char* reshard) {
  constexpr int64_t kRanks = 2;
  auto job = testing::native_job();
  job.parallelism.fsdp_reshard_after_forward = reshard;
  const auto [bytes, gradients] = peak_of_step(job, kRanks, 1);
  return (bytes - gradients) / (kRanks * kBlockBytes);
}

TEST(Memory, HoldsAtMostTwoGatheredBlocks) {
  const double freed = blocks_at_peak("always"), kept = blocks_at_peak("never");
  EXPECT_LT(freed, 2.0);
  // The test can tell: without freeing, all blocks are there when backward begins (and no gradient yet).
  EXPECT_GT(kept, kLayers / 2.0);
  RecordProperty("blocks", std::to_string(freed) + " " + std::to_string(kept));
}

/// What a rank holds at the peak of a step beyond its state, where activations are few: the gradients of what it keeps,
/// a block as it computes with it, whose weights make room for their gradients, and a bucket of what replicas reduce.
struct LayoutMemory {
  const char* mesh;
  double gradients;  ///< of the parameters: the share that a rank keeps, and of a bucket
  double blocks;     ///< gathered
  int64_t bucket_cap_mb = 0;
};

class MemoryOf : public ::testing::TestWithParam<LayoutMemory> {
 protected:
  /// What is measured, of what the closed form says.
  static double share(Job job) {
    const auto& [mesh, share, blocks, bucket_cap_mb] = GetParam();
    CountingAllocator::instance();  // before the run has tensors
    TrainingRun::Options options;
    options.as_messages = true;  // each rank holds what it received
    options.mesh = parse_mesh(mesh);
    options.make_model = deep_llama;
    job.training.seq_len = 2;
    job.training.local_batch_size = 1;
    job.training.global_batch_size = options.mesh.data_parallel();
    job.parallelism.fsdp_reshard_after_forward = "always";
    job.parallelism.data_parallel_bucket_cap_mb = bucket_cap_mb;
    TrainingRun run(job, options);
    const double rank = bytes_at_peak(job, run) / static_cast<double>(options.mesh.ranks());
    return rank / (4.0 * static_cast<double>(run.model().parameter_count()) * share + kBlockBytes * blocks);
  }
};

TEST_P(MemoryOf, ALayoutIsItsClosedForm) {
  for (const auto& job : {testing::native_job(), testing::small_job()}) {
    const double measured = share(job);
    RecordProperty(job.numerics.mode, std::to_string(measured));
    EXPECT_LT(measured, 1.1) << GetParam().mesh << ", " << job.numerics.mode;
    EXPECT_GT(measured, 0.9) << GetParam().mesh << ", " << job.numerics.mode;
  }
}

INSTANTIATE_TEST_SUITE_P(Layouts, MemoryOf,
                         ::testing::Values(LayoutMemory{"one device", 1, 0}, LayoutMemory{"dp_shard=2", 0.5, 1},
                                           LayoutMemory{"dp_shard=4", 0.25, 1}, LayoutMemory{"tp=2", 0.5, 0},
                                           LayoutMemory{"dp_shard=2,tp=2", 0.25, 0.5},
                                           LayoutMemory{"dp_replicate=2", 1, 0},
                                           LayoutMemory{"dp_replicate=2", 2, 0, 25},
                                           LayoutMemory{"dp_replicate=2,dp_shard=2", 0.5, 1}));

/// Samples 0 to 2 are two nodes of the tree over 6, of which each rank keeps its shards; not what came with them.
TEST(Memory, HoldsTheNodesThatWaitForSiblings) {
  constexpr int64_t kRanks = 3;
  const auto one = peak_of_step(testing::small_job(), kRanks, 1), two = peak_of_step(testing::small_job(), kRanks, 2);
  const double waiting = (two.bytes - one.bytes) / two.gradients;
  EXPECT_GT(waiting, 0.5);
  EXPECT_LT(waiting, 2.5);
  RecordProperty("waiting", std::to_string(waiting));
}

/// Of what the layers keep without recomputation.
double activations(const char* mode, double budget = 0, std::string_view option = kChoosesOps) {
  constexpr int64_t kLength = 128;
  CountingAllocator::instance();  // before the run has tensors
  auto job = testing::small_job();
  job.training.seq_len = kLength;
  job.training.local_batch_size = job.training.global_batch_size = 4;
  job.activation_checkpoint.mode = mode;
  job.activation_checkpoint.selective_ac_option = option;
  job.activation_checkpoint.memory_budget = budget;
  TrainingRun::Options options;
  options.as_messages = true;  // each rank holds what it received
  options.make_model = [] {
    models::LlamaOptions sizes;
    sizes.width = 64, sizes.layers = kLayers, sizes.heads = sizes.key_value_heads = 4, sizes.hidden = 128;
    sizes.vocabulary = kVocabulary, sizes.length = kLength;
    return std::make_unique<models::Llama>(sizes);
  };
  TrainingRun run(job, options);
  return bytes_at_peak(job, run);
}

/// What is recomputed is not kept: of whole layers, of layers but for some ops, of half of the layers. With `full`
/// one layer at a time has what all have without recomputation.
TEST(Memory, OfActivationsFallsWithWhatIsRecomputed) {
  const double none = activations("none");
  const double full = activations("full") / none, ops = activations("selective") / none;
  const double half = activations("memory_budget", 0.5) / none, all = activations("memory_budget", 1) / none;
  const double maps = activations("selective", 0, kKeepsMaps) / none;
  const double of_layer = (1 - full) / (kLayers - 1);  // beyond its input
  RecordProperty("full", std::to_string(full));
  RecordProperty("op", std::to_string(ops));
  RecordProperty("linear", std::to_string(maps));
  RecordProperty("half", std::to_string(half));
  EXPECT_LT(full, 0.35);
  EXPECT_LT(full, ops);
  EXPECT_LT(ops, 0.75);
  EXPECT_LT(ops, maps);
  EXPECT_LT(maps, 0.9);
  EXPECT_NEAR(half, 1 - kLayers / 2.0 * of_layer, 0.01);
  EXPECT_EQ(all, 1);
}

constexpr int64_t kLongLength = 2048;

/// Of the second step of one long sequence that `ranks` ranks of cp have: what a rank needs at the peak.
double peak_of_context(const char* method, int64_t ranks) {
  CountingAllocator::instance();  // before the run has tensors
  auto job = testing::small_job();
  job.training.seq_len = kLongLength;
  job.training.local_batch_size = job.training.global_batch_size = 1;
  job.parallelism.context_parallel_rotate_method = method;
  TrainingRun::Options options;
  options.as_messages = true;  // each rank holds what it received
  options.mesh = parse_mesh(fmt::format("cp={}", ranks));
  options.make_model = [] {
    models::LlamaOptions sizes;
    sizes.width = 64, sizes.layers = 2, sizes.heads = sizes.key_value_heads = 8, sizes.hidden = 64;
    sizes.vocabulary = kVocabulary, sizes.length = kLongLength;
    return std::make_unique<models::Llama>(sizes);
  };
  TrainingRun run(job, options);
  return bytes_at_peak(job, run) / static_cast<double>(ranks);
}

/// Gathered keys and values do not get fewer with more ranks; where they go round, or heads are exchanged, a rank has
/// its share of everything.
TEST(Memory, OfARankFallsWithTheRanksOfASequence) {
  const double one = peak_of_context("allgather", 1);
  for (const auto* method : {"allgather", kRing, kUlysses}) {
    const double four = peak_of_context(method, 4) / one;
    RecordProperty(method, std::to_string(four));
    if (std::string_view(method) == "allgather")
      EXPECT_GT(four, 0.32);
    else
      EXPECT_LT(four, 0.3) << method;
  }
}

}  // namespace
}  // namespace lockstep::trainer
