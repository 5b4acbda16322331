#include "tools/bench/peers/peer_inputs.h"

#include <unistd.h>

#include <filesystem>

#include "tools/bench/peers/contender.h"
#include "trainer/checkpoint/safetensors.h"
#include "trainer/state/held_shards.h"

namespace lockstep::bench {
namespace {

constexpr int64_t kBatches = 32, kVocabulary = 2048;

/// A walk over the vocabulary that can be learned: each token follows from the one before, but for one of four steps.
std::vector<int64_t> sequence(int64_t number, int64_t length) {
  std::vector<int64_t> tokens{number * 7919 % kVocabulary};
  for (int64_t i = 1; i < length; ++i) tokens.push_back((5 * tokens.back() + 7 + (i * i + number) % 4) % kVocabulary);
  return tokens;
}

/// Inputs and labels of a step, from 0.
trainer::TokenBatch batch(int64_t step, const BatchSize& size) {
  trainer::TokenBatch batch{size.rows, size.length, {}, {}};
  for (int64_t row = 0; row < size.rows; ++row) {
    const auto tokens = sequence(step % kBatches * size.rows + row, size.length + 1);
    batch.tokens.insert(batch.tokens.end(), tokens.begin(), tokens.end() - 1);
    batch.labels.insert(batch.labels.end(), tokens.begin() + 1, tokens.end());
  }
  return batch;
}

std::vector<int64_t> all_tokens(const BatchSize& size) {
  std::vector<int64_t> all;
  for (int64_t number = 0; number < kBatches * size.rows; ++number) {
    const auto tokens = sequence(number, size.length + 1);
    all.insert(all.end(), tokens.begin(), tokens.end());
  }
  return all;
}

void write(const std::string& path, const BatchSize& size, const trainer::ModelSection& model) {
  auto job = bench_job(size, trainer::parse_mesh("one device"), Numerics::kNative);
  job.model = model;
  BenchRun run(job);
  std::vector<trainer::HeldShard> parameters;
  for (const auto& shard : trainer::held_shards(run.run().state()))
    if (shard.stored.prefix.empty()) parameters.push_back(shard);  // optimizers begin with zeros
  const auto all = trainer::chunks_of(parameters);
  std::vector<trainer::TensorBytes> tensors;
  for (const auto& chunk : all.chunks) tensors.push_back({chunk.name, chunk.dtype, chunk.box.size, chunk.bytes});
  const auto tokens = all_tokens(size);
  tensors.push_back({"tokens", "I64", {kBatches, size.rows, size.length + 1}, std::as_bytes(std::span(tokens))});
  trainer::write_safetensors(path, tensors);
}

}  // namespace

PeerInputs::PeerInputs(const BatchSize& size, const trainer::ModelSection& model)
    : path_(std::filesystem::temp_directory_path() / fmt::format("lockstep-peers-{}.safetensors", ::getpid())),
      size_(size) {
  Contender::fork([&]() -> Contender::Work {
    write(path_, size_, model);
    return [] { return 0.0; };
  })->run(1);
}

PeerInputs::~PeerInputs() {
  std::error_code ignored;
  std::filesystem::remove(path_, ignored);
}

std::function<double()> PeerInputs::steps(const trainer::Job& job, trainer::TrainingRun::Options options,
                                          double learning_rate) const {
  options.mesh = trainer::mesh_of(job);
  const auto run = std::make_shared<trainer::TrainingRun>(job, std::move(options));
  return [run, learning_rate, size = size_, step = int64_t{0}]() mutable {
    const auto tokens = batch(step, size);
    return run->step(++step, tokens, learning_rate).loss;
  };
}

}  // namespace lockstep::bench
