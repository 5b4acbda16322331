#include "tools/bench/scale/forecast_rows.h"

#include <ATen/Functions.h>
#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <thread>

#include "core/files/atomic_file.h"
#include "core/files/proc_value.h"
#include "runtime/context/world.h"
#include "runtime/kernels/speed/machine_speed.h"
#include "runtime/redistribution/redistribute.h"
#include "runtime/tensor/sharded_tensor.h"
#include "tools/bench/bench_run.h"
#include "tools/bench/paired.h"
#include "tools/bench/peers/contender.h"
#include "tools/bench/peers/rank_processes.h"
#include "trainer/forecast/fit.h"

namespace lockstep::bench {
namespace {

using trainer::forecast::Hardware;

/// The debugmodel, or one of another width; of each data-parallel rank so many sequences at once.
struct Case {
  const char *name, *mesh;
  BatchSize size{64, 32};
  int64_t microbatches = 1;  ///< of pp
  int64_t width = 256;
};
constexpr int64_t kHiddenOfWidth = 3;

/// Of products and element-wise ops in another proportion, and with attention.
constexpr Case kFitted[] = {
    {"fit_short", "one device"}, {"fit_long", "one device", {2, 1024}}, {"fit_wide", "one device", {16, 32}, 1, 768}};
constexpr Case kMeshes[] = {{"dp_shard_2", "dp_shard=2"},
                            {"dp_replicate_2", "dp_replicate=2"},
                            {"tp_2", "tp=2"},
                            {"cp_2", "cp=2", {8, 256}},
                            {"pp_2", "pp=2", {64, 32}, 4},
                            {"dp_shard_2_tp_2", "dp_shard=2,tp=2"},
                            {"dp_shard_4", "dp_shard=4"},
                            {"pp_2_dp_shard_2", "pp=2,dp_shard=2", {64, 32}, 4},
                            {"dp_shard_8", "dp_shard=8"},
                            {"dp_shard_4_tp_2", "dp_shard=4,tp=2"},
                            {"dp_shard_2_wide", "dp_shard=2", {16, 32}, 1, 768}};

trainer::Job job_of(const Case& of) {
  auto job = bench_job(of.size, trainer::parse_mesh(of.mesh), Numerics::kCanonical);
  job.model.width = of.width, job.model.hidden = kHiddenOfWidth * of.width;
  job.parallelism.context_parallel_load_balancer = trainer::kHeadTail;
  job.parallelism.pipeline_parallel_microbatch_size = job.training.local_batch_size / of.microbatches;
  return job;
}

using Make = std::function<Contender::Work(const trainer::Processes&)>;

/// A rank of the case's mesh; a mesh of one rank knows of no other process.
Make step_of(const Case& of) {
  return [job = job_of(of)](const trainer::Processes& processes) -> Contender::Work {
    at::set_num_threads(1);
    trainer::TrainingRun::Options options;
    if (trainer::mesh_of(job).ranks() > 1)
      options.local_ranks = {processes.rank}, options.transport = processes.transport;
    return [run = std::make_shared<BenchRun>(job, options)] { return (*run)(), 0.0; };
  };
}

std::shared_ptr<Contender> steps_of(const Case& of) {
  return in_processes(static_cast<int>(trainer::parse_mesh(of.mesh).ranks()), step_of(of));
}

/// The unit of all times: the first fitted step, beside which everything is measured in turns. Machines are faster at
/// one time than at another.
class Unit {
 public:
  explicit Unit(double budget)
      : options_{.pairs = 101, .seconds = std::min(0.3, budget), .budget = budget}, step_(steps_of(kFitted[0])) {
    const auto timing = beside(*step_);
    seconds_ = timing.ours;
  }
  double seconds() const { return seconds_; }
  /// Of the unit; the ratio is how many of the other are as long as it.
  PairedTiming beside(const Contender& other) const {
    return time_in_pairs([&] { step_->run(1); }, [&] { other.run(1); }, options_);
  }
  double seconds_of(const PairedTiming& timing) const { return seconds_ / timing.ratio; }

 private:
  PairedOptions options_;
  std::shared_ptr<Contender> step_;
  double seconds_ = 0;
};

Contender::Work gather_of(const trainer::Processes& processes, int ranks, int64_t floats) {
  at::set_num_threads(1);
  const auto world = std::make_shared<World>(
      World::Options{.rank_count = ranks, .local_ranks = {processes.rank}, .transport = processes.transport});
  const auto& mesh = world->mesh(fmt::format("tp={}", ranks));
  const auto tensor = distribute(at::ones({floats}), Layout::parse(mesh, "[tp=S(0)]"));
  return [world, tensor, whole = Layout::parse(mesh, "[tp=R]")] {
    redistribute_values(tensor, whole, "bench");
    return 0.0;
  };
}

/// An all-gather between two processes.
double gather_seconds(const Unit& unit, int64_t floats, int at_once) {
  const auto contender = in_processes(2, [floats, at_once](const trainer::Processes& processes) -> Contender::Work {
    return [gather = gather_of(processes, 2, floats), at_once] {
      for (int i = 0; i < at_once; ++i) gather();
      return 0.0;
    };
  });
  return unit.seconds_of(unit.beside(*contender)) / at_once;
}

/// Of a rank of the case's mesh.
trainer::forecast::MeasuredStep described(const Case& of, double seconds) {
  models::LlamaOptions options;
  options.width = of.width, options.hidden = kHiddenOfWidth * of.width;
  const auto mesh = trainer::parse_mesh(of.mesh);
  const int64_t local = of.size.rows / mesh.data_parallel() / of.microbatches;
  return {{trainer::forecast::sizes_of(options), of.size.length, of.size.rows},
          {mesh, local, trainer::forecast::Recompute::kNone, 1, 4},
          seconds};
}

/// In what one core does alone: steps on each of them, which wait for each other when they are done.
double cores_at_once(const Unit& unit) {
  const auto cores = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  if (cores == 1) return 1;
  const auto all = in_processes(cores, [cores](const trainer::Processes& processes) -> Contender::Work {
    return
        [step = step_of(kFitted[0])(processes), meet = gather_of(processes, cores, cores)] { return step(), meet(); };
  });
  return cores * unit.beside(*all).ratio;
}

/// What this machine does by itself.
Hardware this_machine(const Unit& unit) {
  constexpr int64_t kFloats = 1 << 22, kMostRanks = 1024;
  Hardware hardware{.name = "this machine"};
  const auto one = kernels::thread_workers(1);
  hardware.operations_per_second = kernels::product_speed(one);
  hardware.memory_bytes_per_second = kernels::copy_speed(one);
  hardware.memory_bytes = static_cast<double>(memory_bytes());
  hardware.ranks_per_host = kMostRanks, hardware.ranks_at_full_speed = cores_at_once(unit);
  hardware.links = 1;
  hardware.host_latency_seconds = hardware.network_latency_seconds = gather_seconds(unit, 2, 1000);
  const double half = 4.0 * kFloats / 2, moving = gather_seconds(unit, kFloats, 10);
  hardware.host_bytes_per_second = half / std::max(1e-9, moving - hardware.host_latency_seconds);
  hardware.network_bytes_per_second = hardware.host_bytes_per_second;
  return hardware;
}

/// The forecast beside the step.
BenchRow row_of(const Case& of, const PairedTiming& timing, const Unit& unit, const Hardware& hardware) {
  const auto step = described(of, unit.seconds_of(timing));
  const double forecast = time_of(step.workload, step.settings, hardware).step();
  BenchRow row{of.name, 1e3 * forecast, 1e3 * step.seconds, "the step", forecast / step.seconds, "ms"};
  row.ratio_upper = forecast / unit.seconds() * timing.upper;
  row.facts = {{"ranks", static_cast<double>(step.settings.mesh.ranks())}};
  return row;
}

}  // namespace

void measure_forecast(const std::string& patterns, double seconds, const std::string& file,
                      const std::function<void(const BenchRow&)>& report) {
  std::vector<std::string> names;
  for (const auto& each : kFitted) names.emplace_back(each.name);
  for (const auto& each : kMeshes) names.emplace_back(each.name);
  require_fit("forecast", names, patterns);
  const Unit unit(seconds);
  std::array<PairedTiming, 3> timings;
  std::array<trainer::forecast::MeasuredStep, 3> steps;
  for (size_t i = 0; i < steps.size(); ++i) {
    timings[i] = unit.beside(*steps_of(kFitted[i]));
    steps[i] = described(kFitted[i], unit.seconds_of(timings[i]));
  }
  const auto hardware = fitted(this_machine(unit), steps);
  if (!file.empty()) write_file_atomically(file, to_toml(hardware));
  for (size_t i = 0; i < steps.size(); ++i)
    if (fits(kFitted[i].name, patterns)) report(row_of(kFitted[i], timings[i], unit, hardware));
  for (const auto& each : kMeshes)
    if (fits(each.name, patterns)) report(row_of(each, unit.beside(*steps_of(each)), unit, hardware));
}

}  // namespace lockstep::bench
