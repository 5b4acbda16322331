#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "core/phase.h"

namespace lockstep {

/// Names one op of a run, the same on every mesh: (step, microbatch, phase, module path, op, occurrence).
struct OpId {
  int64_t step = 0, microbatch = 0;
  Phase phase = Phase::kInit;
  std::string module;      ///< "layers.3.attention"; empty at the top
  std::string op;          ///< "mm", "add.Tensor"
  int64_t occurrence = 0;  ///< how many ops with the same other fields came before

  /// "step 17, microbatch 0, backward, layers.3.attention, mm #2"
  std::string text() const;
};

/// Where the program is, for the current thread. Backward ops find their module through the autograd node that runs:
/// nodes are numbered in the order they were made, so each module scope owns ranges of those numbers.
class PhaseScope {
 public:
  explicit PhaseScope(Phase phase);
  ~PhaseScope();
  PhaseScope(const PhaseScope&) = delete;
  PhaseScope& operator=(const PhaseScope&) = delete;

 private:
  Phase previous_;
};

class ModuleScope {
 public:
  /// `name` is one step of the path, or several joined by dots.
  explicit ModuleScope(std::string_view name);
  ~ModuleScope();
  ModuleScope(const ModuleScope&) = delete;
  ModuleScope& operator=(const ModuleScope&) = delete;

 private:
  size_t previous_length_;
};

/// Starts a step's (and microbatch's) numbering; forgets the node ranges of the one before.
void begin_microbatch(int64_t step, int64_t microbatch);

/// The stream of the next draw in the innermost module scope: a hash of (step, module path, how many draws since the
/// scope was entered), so that recomputing the module draws the same. Throws BadInput when two names share a hash.
uint64_t next_random_stream();

/// The innermost scope's; backward while an autograd node runs and no scope says what for.
Phase current_phase();
/// Step and microbatch of the last begin_microbatch().
int64_t current_step();
int64_t current_microbatch();
/// The path of the open scopes; in backward, that of the node that runs.
std::string current_module();

/// The id of the op about to run, counting its occurrence. `reads` is the module of a parameter that the op reads, if
/// there is one: where no scope says where the program is (an unannotated torch::nn module), the parameter does, for
/// the op and for the backward of its node.
OpId next_op_id(std::string_view op, std::string_view reads = {});

/// The id of the op that runs now (the last one from next_op_id).
const OpId& current_op_id();

/// The same for a run without observers, where ids are not needed and their occurrences not counted: says which op runs
/// now. That costs next to nothing.
void set_uncounted_op(std::string_view op);
/// The id of the op that runs now, of either kind; the occurrence of an uncounted one is -1.
OpId op_running();

}  // namespace lockstep
