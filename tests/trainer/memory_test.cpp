// Fully sharded training holds its shards and at most two gathered blocks at a time: measured by an allocator that
// counts.
#include <c10/core/CPUAllocator.h>
#include <gtest/gtest.h>

#include <atomic>

#include "tests/support/small_models.h"
#include "trainer/training_run.h"

namespace lockstep::trainer {
namespace {

/// Counts the bytes of all CPU tensors that are alive, and their peak.
class CountingAllocator final : public c10::Allocator {
 public:
  explicit CountingAllocator(c10::Allocator* inner) : inner_(inner) {}

  c10::DataPtr allocate(size_t bytes) override {
    auto* block = new Block{inner_->allocate(bytes), bytes, this};
    live_ += bytes;
    peak_ = std::max(peak_.load(), live_.load());
    return {block->data.get(), block, &free_block, c10::Device(c10::kCPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return nullptr; }
  void copy_data(void* to, const void* from, size_t bytes) const override { inner_->copy_data(to, from, bytes); }

  size_t live() const { return live_; }
  size_t peak() const { return peak_; }
  void start() { peak_ = live_.load(); }

 private:
  struct Block {
    c10::DataPtr data;
    size_t bytes;
    CountingAllocator* owner;
  };
  static void free_block(void* pointer) {
    auto* block = static_cast<Block*>(pointer);
    block->owner->live_ -= block->bytes;
    delete block;
  }

  c10::Allocator* inner_;
  std::atomic<size_t> live_{0}, peak_{0};
};

/// Installed for good: tensors made under it may outlive the test.
CountingAllocator& counter() {
  static auto* allocator = [] {
    auto* made = new CountingAllocator(c10::GetCPUAllocator());
    c10::SetCPUAllocator(made, /*priority=*/1);
    return made;
  }();
  return *allocator;
}

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

/// Bytes at the peak of a step beyond those before it and the gradients' shards, in gathered blocks per rank.
double blocks_at_peak(const char* reshard) {
  constexpr int64_t kRanks = 2;
  auto& memory = counter();
  auto job = testing::small_job();
  job.training.seq_len = 2;
  job.training.local_batch_size = 1;
  job.training.global_batch_size = kRanks;
  job.parallelism.fsdp_reshard_after_forward = reshard;
  TrainingRun::Options options;
  options.mesh = parse_mesh("dp_shard=2");
  options.make_model = deep_llama;
  TrainingRun run(job, options);
  const auto batch = testing::batch_for(job, 1, kVocabulary);
  run.step(1, batch, 1e-3);
  const auto before = static_cast<double>(memory.live());
  memory.start();
  run.step(2, batch, 1e-3);
  const auto beyond = static_cast<double>(memory.peak()) - before;
  const double gradients = 4.0 * static_cast<double>(run.model().parameter_count());
  return (beyond - gradients) / (kRanks * kBlockBytes);
}

TEST(Memory, HoldsAtMostTwoGatheredBlocks) {
  const double freed = blocks_at_peak("always"), kept = blocks_at_peak("never");
  EXPECT_LT(freed, 2.0);
  // The test can tell: without freeing, all blocks are there when backward begins (and no gradient yet).
  EXPECT_GT(kept, kLayers / 2.0);
  RecordProperty("blocks", std::to_string(freed) + " " + std::to_string(kept));
}

}  // namespace
}  // namespace lockstep::trainer
