#include "trainer/profile/step_profiler.h"

#include <fmt/format.h>

#include <filesystem>

#include "core/files/atomic_file.h"
#include "core/files/make_folders.h"
#include "replay/view/chrome_trace.h"
#include "runtime/exchange/exchanges_in_flight.h"
#include "runtime/tensor/mesh.h"
#include "trainer/launch/rank_texts.h"
#include "trainer/launch/together.h"
#include "trainer/profile/slowest.h"

namespace lockstep::trainer {

StepProfiler::StepProfiler(const Job& job, const Mesh& mesh) : job_(job), mesh_(mesh) {
  if (!job.profiling.enable_profiling) return;
  auto& world = mesh.world();
  if (world.transport())
    timer_.emplace(world, [&world] { return world.part<ExchangesInFlight>().waited(); });
  else
    timer_.emplace(world, nullptr);
}

void StepProfiler::begin(int64_t step) {
  watching_.reset();
  step_ = timer_ && step % job_.profiling.profile_freq == 0 ? step : 0;
  if (!step_) return;
  timer_->begin();
  watching_.emplace(mesh_.world().observers(), *timer_);
}

std::string StepProfiler::folder() const {
  return (std::filesystem::path(job_.job.dump_folder) / job_.profiling.save_traces_folder /
          fmt::format("iteration_{}", step_))
      .string();
}

void StepProfiler::write(std::span<const replay::TimedStep> steps) const {
  make_folders(folder());
  for (const auto& [recording, waited] : steps) {
    const auto path = fmt::format("{}/rank{}_trace.json", folder(), recording.rank);
    write_file_atomically(path, replay::chrome_trace({&recording, 1}, {&waited, 1}));
  }
}

std::string StepProfiler::report() {
  if (!step_) return {};
  watching_.reset();
  const auto steps = timer_->end(step_);
  agreed(mesh_, [&] { write(steps); });
  std::vector<ProcessTime> processes;
  for (const auto& text : texts_of_all_ranks(mesh_, to_text(time_of(steps))))
    if (processes.empty() || to_text(processes.back()) != text) processes.push_back(process_time_of(text));
  auto line = fmt::format("profiled  step {}: {}; {}", step_, slowest_text(processes), folder());
  step_ = 0;
  return line;
}

}  // namespace lockstep::trainer
