#include "tools/bench/rows/peer_rows.h"

#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "tools/bench/bench_run.h"
#include "tools/bench/peers/contender.h"
#include "tools/bench/peers/peer_inputs.h"
#include "tools/bench/peers/rank_processes.h"
#include "tools/bench/step_profile.h"

namespace lockstep::bench {
namespace {

constexpr double kLearningRate = 1e-3;
constexpr int kComparedSteps = 20;

/// One way to train, which each contender has.
struct Mode {
  const char* name;
  const char* mesh;
  const char* words;  ///< of the peers' options
  int threads = 1;
  BatchSize size = {2, 256};
  bool has_experts = false;  ///< torchtitan's DeepSeek-V3 debugmodel; not of plain PyTorch
};

constexpr Mode kCpuModes[] = {{"one_thread", "one device", "one", 1},
                              {"two_threads", "one device", "one", 2},
                              {"fsdp_2", "dp_shard=2", "fsdp"},
                              {"ddp_2", "dp_replicate=2", "ddp"},
                              {"tp_2", "tp=2", "tp"},
                              {"cp_2", "cp=2", "cp"},
                              {"pp_2", "pp=2", "pp", 1, {4, 128}},  // four microbatches, 1F1B
                              {"experts_one", "one device", "experts_one", 1, {2, 256}, true},
                              {"experts_2", "dp_shard=2,ep=2", "experts", 1, {2, 256}, true}};
constexpr Mode kGpuModes[] = {{"one_gpu", "one device", "one", 1, {8, 1024}}};

struct Peer {
  const char* name;
  const char* program;
  bool compiled = false;
};
constexpr const char* kPlain = "pytorch";
constexpr Peer kCpuPeers[] = {{kPlain, "pytorch_llama.py"}, {"torchtitan", "torchtitan_llama.py"}};
constexpr Peer kGpuPeers[] = {{"pytorch", "pytorch_llama.py"},
                              {"pytorch_compiled", "pytorch_llama.py", true},
                              {"torchtitan_compiled", "torchtitan_llama.py", true}};

/// A contender's first steps, how long it took to be ready for them, and how long the very first took.
struct Beginning {
  std::vector<double> losses;
  double start_seconds, first_step_seconds;
};

/// torchtitan's names for sizes of its debugmodels.
trainer::ModelSection model_of(const Mode& mode) {
  if (!mode.has_experts) return {};
  trainer::ModelSection model{.name = "moe", .flavor = "debugmodel-deepseek-v3", .hidden = 1024, .norm_eps = 1e-5};
  auto& experts = model.experts;
  experts.count = 8, experts.per_token = 3, experts.hidden = 256, experts.shared = 2, experts.scale = 1;
  experts.sigmoid_scores = experts.normalized = false, experts.groups = experts.groups_per_token = 1;
  experts.auxiliary_loss = 0;
  model.latent_attention = {0, 512, 128, 64, 128};
  return model;
}

double seconds_of(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

Beginning begin(const Contender& contender) {
  Beginning beginning{};
  beginning.start_seconds = seconds_of([&] { contender.run(0); });
  beginning.first_step_seconds = seconds_of([&] { beginning.losses = contender.run(1); });
  const auto others = contender.run(kComparedSteps - 1);
  beginning.losses.insert(beginning.losses.end(), others.begin(), others.end());
  return beginning;
}

double largest_difference(const std::vector<double>& losses, const std::vector<double>& others) {
  LOCKSTEP_CHECK_EQ(losses.size(), others.size());
  double largest = 0;
  for (size_t i = 0; i < losses.size(); ++i)
    largest = std::max(largest, std::abs(losses[i] - others[i]) / std::abs(losses[i]));
  return largest;
}

/// How many cores a mode has.
double cores_of(const Mode& mode) {
  return static_cast<double>(std::max<int64_t>(mode.threads, trainer::parse_mesh(mode.mesh).ranks()));
}

class Comparison {
 public:
  Comparison(const PeerOptions& options, const PeerInputs& inputs) : options_(options), inputs_(inputs) {}

  void measure(const Mode& mode, std::span<const Peer> peers,
               const std::function<void(const BenchRow&)>& report) const {
    const bool has_bound = options_.device == "cpu" && !mode.has_experts;  // others are not those products
    const auto products = has_bound ? Contender::fork(products_alone) : nullptr;
    const auto ours = Contender::fork([&] { return steps_of(mode); });
    const auto beginning = begin(*ours);
    for (const auto& peer : peers) {
      if (mode.has_experts && peer.name == std::string_view(kPlain)) continue;
      const auto other = Contender::python(peer.program, words_of(mode, peer).dump(), mode.threads);
      if (!other)
        fail<BadInput>(
            "bench peers needs Python with torch and torchtitan: run tools/python_env, or name one in "
            "LOCKSTEP_TORCH_PYTHON.");
      auto result = row(mode, peer, *ours, beginning, *other);
      if (products) result.facts["at_most"] = cores_of(mode) / in_turns(*products, *other, options_.seconds / 3).ratio;
      report(result);
    }
  }

 private:
  static Contender::Work products_alone() {
    return [products = products_of_a_step()] { return products(), 0.0; };
  }

  static PairedTiming in_turns(const Contender& ours, const Contender& other, double seconds) {
    constexpr double kSpinning = 0.05;  // PyTorch's threads look for work for some 15 ms
    const PairedOptions options{
        .pairs = 1001, .seconds = std::min(0.3, seconds), .budget = seconds, .pause = kSpinning};
    return time_in_pairs([&] { ours.run(1); }, [&] { other.run(1); }, options);
  }

  nlohmann::json words_of(const Mode& mode, const Peer& peer) const {
    return {{"mode", mode.words},
            {"file", inputs_.path()},
            {"rows", inputs_.size().rows},
            {"length", inputs_.size().length},
            {"device", options_.device},
            {"compile", peer.compiled},
            {"learning_rate", kLearningRate}};
  }

  trainer::Job job_of(const Mode& mode) const {
    const auto numerics = options_.device == "cpu" ? Numerics::kCanonical : Numerics::kNative;
    auto job = bench_job(inputs_.size(), trainer::parse_mesh(mode.mesh), numerics);
    job.training.device = options_.device;
    job.model = model_of(mode);
    return job;
  }

  /// Runs in a process of its own.
  Contender::Work steps_of(const Mode& mode) const {
    const auto job = job_of(mode);
    if (trainer::parse_mesh(mode.mesh).ranks() == 1) {
      at::set_num_threads(mode.threads);
      return inputs_.steps(job, {}, kLearningRate);
    }
    const auto ranks = std::make_shared<RankProcesses>(2, [&](const trainer::Processes& processes) {
      at::set_num_threads(1);
      trainer::TrainingRun::Options options;
      options.local_ranks = {processes.rank};
      options.transport = processes.transport;
      return inputs_.steps(job, options, kLearningRate);
    });
    return [ranks] { return (*ranks)(); };
  }

  BenchRow row(const Mode& mode, const Peer& peer, const Contender& ours, const Beginning& our_beginning,
               const Contender& other) const {
    const auto beginning = begin(other);
    const auto timing = in_turns(ours, other, options_.seconds);
    auto row = make_row(mode.name, timing, peer.name, "ms", 1e3);
    const auto tokens = static_cast<double>(inputs_.size().rows * inputs_.size().length);
    row.facts = {{"tokens_per_second", tokens / timing.ours},
                 {"peer_tokens_per_second", tokens / timing.peer},
                 {"peak_memory_bytes", ours.peak_memory()},
                 {"peer_peak_memory_bytes", other.peak_memory()},
                 {"start_seconds", our_beginning.start_seconds},
                 {"peer_start_seconds", beginning.start_seconds},
                 {"first_step_seconds", our_beginning.first_step_seconds},
                 {"peer_first_step_seconds", beginning.first_step_seconds},
                 {"loss_difference", largest_difference(our_beginning.losses, beginning.losses)}};
    row.curves = {{"losses", our_beginning.losses}, {"peer_losses", beginning.losses}};
    return row;
  }

  const PeerOptions& options_;
  const PeerInputs& inputs_;
};

}  // namespace

void measure_peers(const PeerOptions& options, const std::function<void(const BenchRow&)>& report) {
  const bool cpu = options.device == "cpu";
  const auto modes = cpu ? std::span<const Mode>(kCpuModes) : kGpuModes;
  const auto peers = cpu ? std::span<const Peer>(kCpuPeers) : kGpuPeers;
  std::vector<std::string> names;
  for (const auto& mode : modes) names.emplace_back(mode.name);
  require_fit("peers", names, options.patterns);
  for (const auto& mode : modes) {
    if (!fits(mode.name, options.patterns)) continue;
    const PeerInputs inputs(mode.size, model_of(mode));
    Comparison(options, inputs).measure(mode, peers, report);
  }
}

}  // namespace lockstep::bench
