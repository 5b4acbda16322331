#include "trainer/loop/run_metrics.h"

#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <filesystem>
#include <utility>

#include "runtime/context/world.h"
#include "trainer/job/job.h"
#include "trainer/sharding/mesh_hooks.h"

namespace lockstep::trainer {
namespace {

/// None of a CPU, and nothing known if another allocator is at work.
std::optional<GpuMemory> gpu_memory(c10::Device device) {
  if (!device.is_cuda()) return std::nullopt;
  auto* allocator = dynamic_cast<c10::DeviceAllocator*>(c10::GetAllocator(device.type()));
  if (!allocator) return GpuMemory{};
  const auto index =
      device.has_index() ? device.index() : c10::impl::VirtualGuardImpl(device.type()).getDevice().index();
  const auto stats = allocator->getDeviceStats(index);
  constexpr auto kAll = static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE);
  const auto &allocated = stats.allocated_bytes[kAll], &reserved = stats.reserved_bytes[kAll];
  return GpuMemory{allocated.current, allocated.peak, reserved.peak, stats.num_alloc_retries};
}

}  // namespace

RunMetrics::RunMetrics(const Job& job, TrainingRun& run)
    : job_(job),
      run_(run),
      meter_(run.mesh(), compute_dtype(job)),
      memory_(memory_of(run.state())),
      operations_per_token_(run.model().operations_per_token(job.training.seq_len)) {}

void RunMetrics::open(int64_t first) {
  const std::filesystem::path folder = job_.job.dump_folder;
  file_.emplace((folder / "metrics.jsonl").string(), first);
  if (job_.metrics.enable_tensorboard) curves_.emplace((folder / job_.metrics.save_tb_folder).string(), first);
}

void RunMetrics::begin_run(int64_t first) {
  first_ = first;
  start_ = Clock::now();
}

double RunMetrics::tokens_of_a_step() const {
  return static_cast<double>(job_.training.global_batch_size * job_.training.seq_len);
}

StepMetrics RunMetrics::end_step(int64_t step, const StepResult& result, double learning_rate, double seconds,
                                 bool is_checked, const std::optional<ValidationMetrics>& validation) {
  StepMetrics metrics{.step = step,
                      .loss = result.loss,
                      .grad_norm = result.gradient_norm,
                      .learning_rate = learning_rate,
                      .tokens_per_second = tokens_of_a_step() / seconds};
  metrics.step_seconds = meter_.seconds();
  if (is_checked) metrics.checked_tokens_per_second = tokens_of_a_step() / metrics.step_seconds;
  measure(metrics, meter_.end(result.local_losses));
  tell_time(metrics);
  metrics.checkpoint_seconds = std::exchange(checkpoint_seconds_, 0);
  metrics.validation = validation;
  if (file_) file_->append(metrics);
  if (curves_) curves_->append(metrics.step, wall_time(), scalar_events(metrics));
  return metrics;
}

void RunMetrics::measure(StepMetrics& metrics, const StepMeasures& all) const {
  metrics.max_loss = all.max_loss;
  metrics.operations_per_second = metrics.tokens_per_second * operations_per_token_;
  metrics.peak_operations = all.peak_operations;
  metrics.memory_bytes = resident_bytes();
  metrics.peak_memory_bytes = peak_resident_bytes();
  metrics.gpu = gpu_memory(run_.world().shard_device());
  metrics.parameter_bytes = memory_.parameters;
  metrics.gradient_bytes = memory_.gradients;
  metrics.optimizer_bytes = memory_.optimizer;
  metrics.data_seconds = all.data_seconds;
  metrics.communication_seconds = all.communication_seconds;
}

/// A run that goes on has made but some of the steps that are done.
void RunMetrics::tell_time(StepMetrics& metrics) const {
  metrics.seconds = std::chrono::duration<double>(Clock::now() - start_).count();
  const auto made = static_cast<double>(metrics.step - first_ + 1);
  metrics.seconds_left = metrics.seconds / made * static_cast<double>(job_.training.steps - metrics.step);
}

}  // namespace lockstep::trainer
