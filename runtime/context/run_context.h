#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/batch_rows.h"
#include "rng/stream.h"
#include "runtime/context/op_id.h"

namespace lockstep {

class Mesh;

/// What an op's backward takes over from its forward.
struct OpContext {
  int64_t microbatch = 0;
  std::string module;            ///< path of the open ModuleScopes
  BatchRows rows;                ///< all zero: weights never shift
  std::optional<uint64_t> seed;  ///< of random ops
};

/// What a program says about the ops that it runs. Scopes (runtime/context/scopes.h) say it; dispatch reads it once for
/// each op and hands it on: plans and kernels are given what they need of it.
///
/// What an op's backward runs is of the op's microbatch, module, rows and seed, whatever is open by then: autograd
/// numbers nodes in the order they were made, and the context remembers what was open from which number on. So the
/// forwards of several microbatches may come before their backwards. A program that never calls begin_microbatch() may
/// open 65,536 scopes between an op and its backward; with twice as many or more, that backward throws BadInput.
class RunContext {
 public:
  RunContext() = default;
  RunContext(const RunContext&) = delete;
  RunContext& operator=(const RunContext&) = delete;

  /// That of this thread's innermost Use; outside of all, one that belongs to the thread.
  static RunContext& current();

  /// Makes a context the current one of this thread for as long as it lives. Runs with contexts of their own do not
  /// disturb each other, however their calls alternate.
  class Use {
   public:
    explicit Use(RunContext& context);
    ~Use();
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;

   private:
    RunContext* previous_;
  };

  /// Starts the numbering of a microbatch's ops, and with a new step forgets those of the one before.
  void begin_microbatch(int64_t step, int64_t microbatch);
  /// Goes on with a microbatch that has begun.
  void continue_microbatch(int64_t microbatch) { open_.microbatch = microbatch; }

  int64_t step() const { return open_.step; }
  int64_t microbatch() const;
  /// The innermost scope's; backward while an autograd node runs and no scope says what for.
  Phase phase() const;
  /// The path of the open scopes; in backward, that of the node that runs.
  std::string module() const;
  const BatchRows& rows() const;
  /// Throws BadInput outside of every RandomScope.
  uint64_t seed() const;
  /// The mesh that factories make replicated tensors on. Throws BadInput outside of every MeshScope.
  const Mesh& mesh() const;

  /// The stream of the next draw in the innermost module scope: a hash of (step, module path, how many draws since the
  /// scope was entered), so that recomputing the module draws the same. Throws BadInput when two names share a hash.
  uint64_t next_random_stream();

  /// For the length of a scope, ops draw what the last one drew, and none of it counts: an op that runs once more.
  class RepeatedDraws {
   public:
    explicit RepeatedDraws(RunContext& context) : context_(context) { context_.repeats_ = true; }
    ~RepeatedDraws() { context_.repeats_ = false; }
    RepeatedDraws(const RepeatedDraws&) = delete;
    RepeatedDraws& operator=(const RepeatedDraws&) = delete;

   private:
    RunContext& context_;
  };

  /// The id of the op about to run, counting its occurrence. `reads` is the module of a parameter that the op reads, if
  /// there is one: where no scope says where the program is (an unannotated torch::nn module), the parameter does, for
  /// the op and for the backward of its node.
  OpId next_op_id(std::string_view op, std::string_view reads = {});
  /// The last one from next_op_id().
  const OpId& last_op_id() const { return last_op_; }

  /// For a run without observers, where ids are not needed and occurrences not counted: says which op runs now. That
  /// costs next to nothing.
  void set_uncounted_op(std::string_view op) { uncounted_.assign(op); }
  /// The id of the op that runs now, of either kind; the occurrence of an uncounted one is -1.
  OpId op_running() const;

 private:
  friend class BatchScope;
  friend class CommunicationScope;
  friend class RandomScope;
  friend class PhaseScope;
  friend class MeshScope;
  friend class InitialValuesScope;
  friend class ModuleScope;

  /// What a scope said, and in which node's backward (null: in none).
  template <class T>
  struct Said {
    T value = {};
    const void* node = nullptr;
  };
  /// What the scopes have said.
  struct Open {
    int64_t step = 0, microbatch = 0;
    Phase phase = Phase::kInit;
    std::string module;
    Said<BatchRows> rows;
    Said<std::optional<uint64_t>> seed;
    const Mesh* mesh = nullptr;
  };
  /// From this autograd sequence number on, new nodes have this context.
  struct Breakpoint {
    uint64_t sequence;
    OpContext context;
  };

  void remember(uint64_t from, OpContext context);
  void remember_open();
  OpContext context_of_new_nodes() const;
  const OpContext* of_running_node() const;
  template <class T>
  const T& valid(const Said<T>& said, T OpContext::*kept) const;
  void claim_node(std::string_view module);

  Open open_;
  std::vector<Breakpoint> breakpoints_;
  uint64_t forgotten_ = 0;  ///< breakpoints below are gone: a program without steps opened too many scopes
  std::map<int64_t, std::unordered_map<std::string, int64_t>> occurrences_;  ///< by microbatch
  std::vector<uint64_t> draws_{0};                                           ///< per open module scope
  rng::StreamRegistry streams_;
  uint64_t last_stream_ = 0;
  bool repeats_ = false;
  uint64_t seen_ = 0;  ///< the autograd sequence number at the last op
  OpId last_op_;
  std::string uncounted_;  ///< the op that runs, if it came after `last_op_`
};

}  // namespace lockstep
