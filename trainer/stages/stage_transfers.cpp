#include "core/error.h"
#include "runtime/context/scopes.h"
#include "runtime/redistribution/redistribute.h"
#include "runtime/tensor/sharded_tensor.h"
#include "trainer/stages/pipeline_step.h"

namespace lockstep::trainer {
namespace {

/// What both ends know of it: at most 2^16 stages and microbatches.
uint64_t tag_of(StageTransfers::Kind kind, int64_t to, int64_t microbatch) {
  return (static_cast<uint64_t>(kind) + 8) << 32 | static_cast<uint64_t>(to) << 16 | static_cast<uint64_t>(microbatch);
}

Phase phase_of(StageTransfers::Kind kind) {
  return kind == StageTransfers::Kind::kActivation ? Phase::kForward : Phase::kBackward;
}

}  // namespace

StageTransfers::StageTransfers(Stages& stages, RunContext& context, std::vector<int64_t> tokens)
    : stages_(stages), context_(context), tokens_(std::move(tokens)) {
  expect_step();
}

StageTransfers::StageTransfers(Stages& stages, RunContext& context, std::vector<int64_t> tokens, Range microbatches)
    : stages_(stages), context_(context), tokens_(std::move(tokens)) {
  for (size_t s = 0; s + 1 < stages_.count(); ++s)
    for (int64_t i = 0; i < microbatches.length; ++i) expect(Kind::kActivation, stages_[s], microbatches.start + i);
}

Stage& StageTransfers::target(Kind kind, const Stage& from) const {
  return stages_[static_cast<size_t>(from.number() + (kind == Kind::kActivation ? 1 : -1))];
}

/// A gradient is laid out as what it is of.
const TensorSpec* StageTransfers::spec_of(Kind kind, const Stage& to) const {
  if (kind == Kind::kActivation) return to.input_spec(tokens_);
  const auto& from = stages_[static_cast<size_t>(to.number() + 1)];
  const auto* spec = from.input_spec(tokens_);
  return &from.mesh() == &to.mesh() ? spec : spec_at(*spec, to.mesh());
}

void StageTransfers::expect(Kind kind, const Stage& from, int64_t microbatch) {
  auto& to = target(kind, from);
  if (!to.is_here() || &from.mesh() == &to.mesh()) return;
  context_.continue_microbatch(microbatch);
  const PhaseScope phase(phase_of(kind));
  const ModuleScope scope(to.path());
  expected_.emplace(Key{kind, to.number(), microbatch},
                    PendingTransfer(spec_of(kind, to), from.mesh(), tag_of(kind, to.number(), microbatch)));
}

void StageTransfers::expect_step() {
  for (const auto& actions : stages_.pipeline().schedule.ranks)
    for (const auto& action : actions) {
      const auto& from = stages_[static_cast<size_t>(action.stage)];
      const bool is_forward = action.kind == pipeline::ActionKind::kForward;
      if (is_forward && !from.is_last()) expect(Kind::kActivation, from, action.microbatch);
      if (gives_input_gradients(action.kind) && !from.is_first()) expect(Kind::kGradient, from, action.microbatch);
    }
}

at::Tensor StageTransfers::handed_on(const Stage& from, const at::Tensor& output) const {
  const PhaseScope phase(Phase::kForward);
  const ModuleScope scope(from.path());
  const auto& layout = layout_into(target(Kind::kActivation, from));
  return redistribute(output, Layout(from.mesh(), layout.placements()));
}

void StageTransfers::give(Kind kind, Stage& from, int64_t microbatch, const at::Tensor& tensor) {
  auto& to = target(kind, from);
  const auto* wanted = spec_of(kind, to);
  const auto& spec = lockstep::spec_of(tensor);
  if (spec.sizes != wanted->sizes || spec.dtype != wanted->dtype)
    fail<BadInput>("stage {} of the pipeline hands on {}; what the model's blocks hand on is {}", from.number(),
                   spec.text(), wanted->text());
  LOCKSTEP_CHECK(spec.layout.placements() == wanted->layout.placements(), "{} is handed on as {}", spec.text(),
                 wanted->text());
  const PhaseScope phase(phase_of(kind));
  const ModuleScope scope(from.path());
  if (&from.mesh() == &to.mesh())
    here_[{kind, to.number(), microbatch}] = tensor;
  else
    send(tensor, to.mesh(), tag_of(kind, to.number(), microbatch));
}

at::Tensor StageTransfers::take(Kind kind, Stage& to, int64_t microbatch) {
  const PhaseScope phase(phase_of(kind));
  const ModuleScope scope(to.path());
  const Key key{kind, to.number(), microbatch};
  if (auto found = here_.extract(key)) return found.mapped();
  auto found = expected_.extract(key);
  LOCKSTEP_CHECK(!found.empty(), "stage {} takes what nobody gives it", to.number());
  return found.mapped().finish();
}

}  // namespace lockstep::trainer
