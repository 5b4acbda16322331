#include "tools/bench/rows/step_rows.h"

#include <ATen/Functions.h>
#include <ATen/Parallel.h>

#include "core/error.h"
#include "tools/bench/bench_run.h"
#include "tools/bench/peers/plain_llama.h"
#include "tools/bench/rows/numerics_rows.h"
#include "trainer/generate/generate.h"

namespace lockstep::bench {
namespace {

constexpr BatchSize kSmall{2, 256}, kLarge{8, 512};

BenchRun run_on(const char* mesh, const BatchSize& size, Numerics numerics) {
  return BenchRun(bench_job(size, trainer::parse_mesh(mesh), numerics));
}

/// Parameters and activations in bfloat16.
BenchRun narrow_run(const BatchSize& size, Numerics numerics) {
  auto job = bench_job(size, trainer::parse_mesh("one device"), numerics);
  job.training.mixed_precision_param = "bfloat16";
  return BenchRun(job);
}

/// The same in plain LibTorch.
class PlainRun {
 public:
  explicit PlainRun(const BatchSize& size) : size_(size), llama_(size.length), batch_(token_batch(size)) {}
  void operator()() { llama_.step(sequences(batch_.tokens), sequences(batch_.labels), 1e-3); }
  int64_t parameter_count() const { return llama_.parameter_count(); }

 private:
  at::Tensor sequences(const std::vector<int64_t>& values) const {
    return at::tensor(values).view({size_.rows, size_.length});
  }

  BatchSize size_;
  PlainLlama llama_;
  trainer::TokenBatch batch_;
};

}  // namespace

std::vector<BenchRow> step_rows(const PairedOptions& options) {
  at::set_num_threads(1);
  auto one = run_on("one device", kSmall, Numerics::kNative),
       four = run_on("dp_shard=2,tp=2", kSmall, Numerics::kNative);
  PlainRun plain(kSmall);
  LOCKSTEP_CHECK_EQ(plain.parameter_count(), one.run().model().parameter_count());
  return {make_row("one_rank_vs_libtorch", time_in_pairs(one, plain, options), "libtorch", "ms", 1e3),
          make_row("simulated_2x2_vs_one_rank", time_in_pairs(four, one, options), "one rank", "ms", 1e3)};
}

namespace {

/// Canonical, on some threads, beside plain LibTorch on as many.
NumericsCase step_case(const std::string& name, const BatchSize& size, int threads) {
  return {name, [=](PairedOptions options) {
            at::set_num_threads(threads);
            options.own_time = threads == 1;
            auto ours = run_on("one device", size, Numerics::kCanonical);
            PlainRun plain(size);
            return make_row(name, time_in_pairs(ours, plain, options), "libtorch", "ms", 1e3);
          }};
}

NumericsCase narrow_case(const std::string& name, const BatchSize& size) {
  return {name, [=](PairedOptions options) {
            at::set_num_threads(1);
            options.own_time = true;
            auto canonical = narrow_run(size, Numerics::kCanonical), native = narrow_run(size, Numerics::kNative);
            return make_row(name, time_in_pairs(canonical, native, options), "native", "ms", 1e3);
          }};
}

}  // namespace

std::vector<NumericsCase> step_cases() {
  std::vector<NumericsCase> all;
  for (const auto& size : {kSmall, kLarge}) {
    const auto name = fmt::format("step_{}_tokens", size.rows * size.length);
    all.push_back(step_case(name, size, 1));
    all.push_back(step_case(name + "_t2", size, 2));
    all.push_back(narrow_case(name + "_bf16", size));
  }
  return all;
}

namespace {

constexpr int64_t kPrompt = 128, kTokens = 16;

/// Goes on with a prompt for some tokens, the most likely ones.
class Decode {
 public:
  Decode(int64_t samples, Numerics numerics, bool cached)
      : run_(bench_job({1, 2 * kPrompt}, trainer::parse_mesh("one device"), numerics)) {
    options_.count = kTokens, options_.samples = samples, options_.cached = cached;
    for (int64_t i = 0; i < kPrompt; ++i) prompt_.push_back((i * 37 + 11) % run_.run().model().vocabulary());
  }
  void operator()() {
    const auto texts = trainer::generate(run_.run(), prompt_, options_);
    LOCKSTEP_CHECK_EQ(static_cast<int64_t>(texts.at(0).tokens.size()), kPrompt + kTokens);
  }

 private:
  BenchRun run_;
  trainer::GenerateOptions options_;
  std::vector<int64_t> prompt_;
};

NumericsCase decode_case(int64_t samples, bool cached) {
  const auto name = fmt::format("generate_{}x{}{}", samples, kTokens, cached ? "" : "_uncached");
  return {name, [=](PairedOptions options) {
            at::set_num_threads(1);
            options.own_time = true;
            Decode canonical(samples, Numerics::kCanonical, cached), native(samples, Numerics::kNative, cached);
            return make_row(name, time_in_pairs(canonical, native, options), "native", "ms", 1e3);
          }};
}

}  // namespace

std::vector<NumericsCase> generate_cases() {
  return {decode_case(1, true), decode_case(8, true), decode_case(1, false)};
}

}  // namespace lockstep::bench
