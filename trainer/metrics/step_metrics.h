#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trainer/metrics/event_file.h"
#include "trainer/metrics/validation.h"

/// The numbers of a step, for programs: docs/metrics.md says what each is.
namespace lockstep::trainer {

/// Of LibTorch's caching allocator, whose memory a GPU's tensors are in.
struct GpuMemory {
  int64_t allocated_bytes = 0, peak_allocated_bytes = 0;  ///< by tensors: now, and at most so far
  int64_t peak_reserved_bytes = 0;                        ///< taken from the GPU, at most so far
  int64_t retries = 0;                                    ///< times that all unused memory was given back to go on
};

struct StepMetrics {
  int64_t step = 0;
  double loss = 0;
  std::optional<double> max_loss = {};  ///< largest mean of a rank's own tokens
  double grad_norm = 0;
  double learning_rate = 0;
  double tokens_per_second = 0;                          ///< of the step on the mesh alone, checked or not
  std::optional<double> checked_tokens_per_second = {};  ///< with all that checked it; none where nothing did
  double operations_per_second = 0;                      ///< of the model, on the mesh alone
  double peak_operations = 0;         ///< a second, that the run's threads reach at best; 0: not known
  int64_t memory_bytes = 0;           ///< resident memory of this process, now
  int64_t peak_memory_bytes = 0;      ///< the most there has been of it; 0: the system does not tell
  std::optional<GpuMemory> gpu = {};  ///< of runs on a GPU
  int64_t parameter_bytes = 0, gradient_bytes = 0, optimizer_bytes = 0;  ///< of this process's ranks
  double step_seconds = 0;                           ///< of the whole step, with its data and its check
  double data_seconds = 0;                           ///< to read its batch, on the slowest rank
  std::optional<double> communication_seconds = {};  ///< that a rank waited, the mean; none in one process
  double checkpoint_seconds = 0;                     ///< that the run stood still for checkpoints since the step before
  double seconds = 0;                                ///< since the run started
  double seconds_left = 0;                           ///< until its last step, at the mean speed so far
  std::optional<ValidationMetrics> validation = {};  ///< of steps after which there is one

  /// Of runs on a GPU whose allocator is LibTorch's.
  bool knows_gpu() const { return gpu && gpu->peak_allocated_bytes > 0; }
  /// Share of the peak; none where that is not known.
  std::optional<double> utilization() const;
  /// Of the most that was resident, or on the GPU allocated, what is neither parameters, gradients nor optimizer state;
  /// none where it is not known.
  std::optional<int64_t> other_bytes() const;
};

/// One JSON object in one line, without the newline; numbers of a validation are there where there was one. Numbers
/// that are not finite become null.
std::string json_line(const StepMetrics& metrics);

/// What TensorBoard draws of a step, under torchtitan's names where it has them. What is not known is left out.
std::vector<ScalarEvent> scalar_events(const StepMetrics& metrics);

}  // namespace lockstep::trainer
