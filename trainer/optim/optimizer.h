#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "trainer/names/registry.h"
#include "trainer/optim/parameter_state.h"

namespace lockstep::trainer {

struct Job;
struct OptimizerSection;

/// A number that a step was given or derived: what a recording keeps as bits.
struct StepScalar {
  const char* name;
  double value;
};

/// What kind of tensor an optimizer keeps for a trainable parameter: of its sizes and layout.
struct SlotKind {
  const char* name;  ///< a word; parts of names in checkpoints and recordings
  /// None: the parameter's own. Otherwise one that float32 holds exactly, as which checkpoints keep it.
  std::optional<c10::ScalarType> dtype = {};
  /// Starts as the parameter's initial value and is mixed of its values from then on; otherwise it starts as zeros.
  bool follows_value = false;
  /// One op of update() reads and writes it, also where the host keeps it (`optimizer.offload_state`).
  bool may_be_offloaded = false;
};

/// How a step changes parameters. It holds settings alone; all that changes is in ParameterState and in the scalars of
/// a step, so that a recorded step is repeated from what was recorded.
class Optimizer {
 public:
  virtual ~Optimizer() = default;

  /// Of one parameter, in the order of digests and checkpoints. Reads no tensor.
  virtual std::vector<SlotKind> slots(const ParameterState& parameter) const = 0;

  /// The numbers of step `step` (counted from 1) that update() needs, the same for every parameter. `gradient_scale` is
  /// what gradients are to be multiplied by (clipping). No libm: equal bits on every machine.
  virtual std::vector<StepScalar> scalars(int64_t step, double learning_rate, double gradient_scale) const = 0;

  /// Called for all parameters before update() is for any, by optimizers whose updates need a number of them all:
  /// writes slots. The root of the mean square of all elements that it returns is then the scalar kMeasuredRoot of
  /// update(). Undefined where the optimizer needs none, for every parameter alike.
  virtual at::Tensor measure(const ParameterState& /*parameter*/, const at::Tensor& /*gradient*/,
                             std::span<const StepScalar> /*scalars*/) const {
    return {};
  }

  /// Writes value and slots, in place. `gradient` has the parameter's layout and is not written. Ops in one fixed
  /// order, each element by itself: equal bits on every mesh.
  virtual void update(const ParameterState& parameter, const at::Tensor& gradient,
                      std::span<const StepScalar> scalars) const = 0;
};

inline constexpr const char* kMeasuredRoot = "measured_root";

/// REQUIRES: there is one of this name.
double value_of(std::span<const StepScalar> scalars, std::string_view name);

/// The scalar "learning_rate" times the parameter's factor.
double rate_of(const ParameterState& parameter, std::span<const StepScalar> scalars);

/// What the parameter's group says of weight_decay; else optimizer.weight_decay, 0 where optimizer.decay_1d leaves it
/// out.
double weight_decay_of(const OptimizerSection& settings, const ParameterState& parameter);

/// 1 - beta^step, multiplied up: no libm.
double bias_correction(double beta, int64_t step);

/// The optimizer's slots for a parameter, as they are before the first step, each laid out as its value. `offload`:
/// those that may be lie in the host's memory, pinned, where shards are on a GPU.
std::vector<OptimizerSlot> new_slots(const Optimizer& optimizer, const ParameterState& parameter, bool offload = false);

using OptimizerBuilder = std::unique_ptr<Optimizer> (*)(const Job& job);

/// By optimizer.name.
Registry<OptimizerBuilder>& optimizer_registry();

std::unique_ptr<Optimizer> make_optimizer(const Job& job);

}  // namespace lockstep::trainer
