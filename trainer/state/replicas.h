#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/digest/digest.h"
#include "runtime/tensor/mesh.h"
#include "trainer/optim/optimizer.h"
#include "trainer/optim/parameter_state.h"

namespace lockstep::trainer {

/// Which copies are compared. What drifts in optimizer state shows in the parameters after the next update.
enum class Copies { kParameters, kAll };

/// How what several ranks hold alike differs: tensors of which copies of a cut lie on several ranks, and `numbers`,
/// which each process computed for itself. Empty if all are the same, bit by bit. A collective of 32 bytes from each
/// rank, with the same answer on all; the digests are of each rank's own shards. Only where something differs more is
/// sent, to name the tensor, the ranks and the worst element.
std::string replica_difference(const TrainingState& state, std::span<const StepScalar> numbers,
                               Copies copies = Copies::kAll);

/// The same, of tensors that are digested one by one: right after each is written, while it is in the cache, that takes
/// half the time. All ranks add the same tensors in the same order.
class ReplicaDigests {
 public:
  /// Forgets what was added.
  void clear() { sums_.clear(), odd_ = 1; }

  /// A parameter's value; of kAll what the optimizer keeps of it, too.
  void add(const ParameterState& entry, Copies copies);

  /// How copies differed as they were added, or `numbers`; then forgets them. `state` names what still differs.
  std::string difference(const TrainingState& state, std::span<const StepScalar> numbers);

 private:
  /// A sum of digests, modulo 2^128.
  struct Sum {
    uint64_t high = 0, low = 0;
    void add(const Digest& digest, uint64_t times);
  };

  static Sum of_numbers(const Mesh& mesh, std::span<const StepScalar> numbers, size_t index);

  std::vector<Sum> sums_;  ///< of each local rank
  uint64_t odd_ = 1;       ///< of the last tensor: so that two that change places do not make up for each other
};

}  // namespace lockstep::trainer
