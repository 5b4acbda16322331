#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "trainer/job/registry.h"
#include "trainer/optim/parameter_state.h"

namespace lockstep::trainer {

struct Job;
struct OptimizerSection;

/// A number that a step was given or derived: what a recording keeps as bits.
struct StepScalar {
  const char* name;
  double value;
};

/// What kind of tensor an optimizer keeps for each trainable parameter: of its sizes and layout, zero at first.
struct SlotKind {
  const char* name;  ///< a word; parts of names in checkpoints and recordings
  /// None: the parameter's own. Otherwise one that float32 holds exactly, as which checkpoints keep it.
  std::optional<c10::ScalarType> dtype = {};
};

/// How a step changes parameters. It holds settings alone; all that changes is in ParameterState and in the scalars of
/// a step, so that a recorded step is repeated from what was recorded.
class Optimizer {
 public:
  virtual ~Optimizer() = default;

  /// In the order of digests and checkpoints.
  virtual std::vector<SlotKind> slots() const = 0;

  /// The numbers of step `step` (counted from 1) that update() needs, the same for every parameter. `gradient_scale` is
  /// what gradients are to be multiplied by (clipping). No libm: equal bits on every machine.
  virtual std::vector<StepScalar> scalars(int64_t step, double learning_rate, double gradient_scale) const = 0;

  /// Writes value and slots, in place. `gradient` has the parameter's layout and is not written. Ops in one fixed
  /// order, each element by itself: equal bits on every mesh.
  virtual void update(const ParameterState& parameter, const at::Tensor& gradient,
                      std::span<const StepScalar> scalars) const = 0;
};

/// REQUIRES: there is one of this name.
double value_of(std::span<const StepScalar> scalars, std::string_view name);

/// optimizer.weight_decay for this parameter: 0 where optimizer.decay_1d leaves it out.
double weight_decay_of(const OptimizerSection& settings, const ParameterState& parameter);

/// Zeros for each slot of the optimizer.
std::vector<OptimizerSlot> new_slots(const Optimizer& optimizer, const at::Tensor& value);

using OptimizerBuilder = std::unique_ptr<Optimizer> (*)(const Job& job);

/// By optimizer.name.
Registry<OptimizerBuilder>& optimizer_registry();

std::unique_ptr<Optimizer> make_optimizer(const Job& job);

}  // namespace lockstep::trainer
