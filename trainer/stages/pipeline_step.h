#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "runtime/context/run_context.h"
#include "runtime/transfer/transfer.h"
#include "trainer/stages/stages.h"

namespace lockstep::trainer {

/// Tensors on their way between stages: activations to the next one, their gradients to the one before. What comes from
/// other ranks is expected from the start, in the order in which those send it; stages of one rank hand over.
class StageTransfers {
 public:
  enum class Kind : uint8_t { kActivation, kGradient };

  /// Of a step, in the schedule's order. `tokens`: sizes of a microbatch's.
  StageTransfers(Stages& stages, RunContext& context, std::vector<int64_t> tokens);
  /// Of forwards alone: of all these microbatches through a stage, and then through the next.
  StageTransfers(Stages& stages, RunContext& context, std::vector<int64_t> tokens, Range microbatches);

  /// A stage's output as it is handed on: in the layout that it travels in. Differentiable. REQUIRES: not the last
  /// stage.
  at::Tensor handed_on(const Stage& from, const at::Tensor& output) const;
  /// From the stage; never waits. Throws BadInput for what is not what a model's blocks hand on.
  void give(Kind kind, Stage& from, int64_t microbatch, const at::Tensor& tensor);
  /// To the stage; waits for it.
  at::Tensor take(Kind kind, Stage& to, int64_t microbatch);
  /// In whose layout activations between two stages travel, and their gradients: of what this one takes.
  const Layout& layout_into(const Stage& stage) const { return stage.input_spec(tokens_)->layout; }

 private:
  using Key = std::tuple<Kind, int64_t, int64_t>;  ///< kind, stage that takes it, microbatch

  Stage& target(Kind kind, const Stage& from) const;
  const TensorSpec* spec_of(Kind kind, const Stage& to) const;
  void expect(Kind kind, const Stage& from, int64_t microbatch);
  void expect_step();

  Stages& stages_;
  RunContext& context_;
  std::vector<int64_t> tokens_;
  std::map<Key, PendingTransfer> expected_;
  std::map<Key, at::Tensor> here_;  ///< between stages of one mesh
};

/// What is done with a microbatch on a stage, in the scopes that belong to it. `input` of the first stage and
/// `gradient` of the last are not defined.
struct StageWork {
  std::function<at::Tensor(Stage& stage, int64_t microbatch, const at::Tensor& input)> forward;
  std::function<void(Stage& stage, int64_t microbatch, const at::Tensor& output, const at::Tensor& gradient)> backward;
  /// The end of the backward: `split`, if there is one, has what is left of it.
  std::function<void(Stage& stage, int64_t microbatch, SplitBackward* split)> end;
};

/// Carries out what a schedule has for the ranks that live here: all of it in one process
/// (pipeline::execution_order()), a rank's list in a process of its own. Each stage and microbatch has a graph of its
/// own.
void run_pipeline(Stages& stages, RunContext& context, std::vector<int64_t> tokens, const StageWork& work);

}  // namespace lockstep::trainer
