#include "trainer/gradients/gradient_accumulator.h"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include "core/error.h"
#include "runtime/context/observer.h"
#include "runtime/context/scopes.h"
#include "runtime/context/told_values.h"
#include "runtime/context/world.h"
#include "runtime/redistribution/redistribute.h"
#include "runtime/tensor/sharded_tensor.h"
#include "trainer/gradients/shard_axes.h"

namespace lockstep::trainer {
namespace {

/// A formal sum of several gradients has no node of its own in the tree over samples.
void require_one_use(const at::Tensor& gradient, const std::string& module) {
  const auto& spec = spec_of(gradient);
  if (spec.layout.is_formal_sum())
    fail<BadInput>(
        "a parameter that {} reads once is used {} times (its gradient is {}): the number of microbatches would change "
        "its bits. Read it for each use, or use one microbatch or numerics.mode = \"native\".",
        module.empty() ? "the model" : module, spec.layout.ordered_sum()->terms, spec.text());
}

}  // namespace

/// Takes a leaf's gradient before autograd stores it. (Autograd would copy it, which a sum must not be read for that is
/// not finished.)
struct GradientAccumulator::Hook : torch::autograd::FunctionPreHook {
  Hook(GradientAccumulator& owner, Use& use) : owner_(owner), use_(use) {}
  torch::autograd::variable_list operator()(const torch::autograd::variable_list& gradients) override {
    owner_.add(use_, gradients[0]);
    return {at::Tensor()};
  }

 private:
  GradientAccumulator& owner_;
  Use& use_;
};

namespace {

/// What ops on the gradient of a use are called by, in whatever order and on whatever stage they run: the parameter,
/// and who reads it if that is another module than its own.
std::string place_of(const std::string& parameter, const std::string& reader) {
  return reader.empty() || parameter.starts_with(reader) ? parameter : parameter + "." + reader;
}

}  // namespace

struct GradientAccumulator::Use {
  /// tensor_data(): detached, with the parameter's version counter, and no op: steps are alike from the first one on.
  Use(GradientAccumulator& owner, size_t number, const std::string& who)
      : parameter(number),
        reader(who),
        place(place_of(owner.names_[number], reader)),
        leaf(owner.parameters_[number].tensor_data().requires_grad_()),
        replicas(layout_of(leaf).mesh(), owner.microbatches_, owner.nodes_) {
    torch::autograd::impl::add_hook(leaf, std::make_unique<Hook>(owner, *this));
  }
  ~Use() { torch::autograd::impl::clear_hooks(leaf); }
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;

  size_t parameter;  ///< its number
  std::string reader, place;
  at::Tensor leaf;
  at::Tensor sum;          ///< of the step's microbatches so far (native) or of this one (canonical)
  bool has_nodes = false;  ///< this microbatch's are in `replicas` already
  ReplicaSums replicas;
  std::optional<size_t> reduction = {};  ///< of the step's sum: its number
};

GradientAccumulator::GradientAccumulator(std::vector<at::Tensor> parameters, const Batching& batching,
                                         Numerics numerics, std::vector<std::string> names, std::string place,
                                         int64_t bucket_bytes, bool replicas_share)
    : parameters_(std::move(parameters)),
      names_(std::move(names)),
      reductions_(bucket_bytes, std::move(place)),
      microbatches_(batching.accumulation_steps),
      nodes_(batching.nodes_per_microbatch()),
      numerics_(numerics),
      replicas_share_(replicas_share) {
  LOCKSTEP_CHECK_EQ(names_.size(), parameters_.size());
  for (size_t p = 0; p < parameters_.size(); ++p) index_[parameters_[p].unsafeGetTensorImpl()] = p;
}

GradientAccumulator::~GradientAccumulator() = default;

Layout GradientAccumulator::target_of(const at::Tensor& parameter) const {
  return update_layout(layout_of(parameter), spec_of(parameter).sizes, replicas_share_);
}

at::Tensor GradientAccumulator::leaf(const at::Tensor& parameter) {
  const auto found = index_.find(parameter.unsafeGetTensorImpl());
  if (found == index_.end()) return parameter;
  const auto module = RunContext::current().module();
  auto [use, is_new] = uses_.try_emplace({found->second, module, reads_[microbatch_][{found->second, module}]++});
  if (is_new) {
    const at::AutoGradMode grad(true);
    use->second = std::make_unique<Use>(*this, found->second, module);
    use_of_[use->second->leaf.unsafeGetTensorImpl()] = use->second.get();
  }
  if (is_new && canonical())
    for (const int64_t ended : ended_) use->second->replicas.add(ended, {});
  return use->second->leaf;
}

void GradientAccumulator::take_nodes(const at::Tensor& leaf, const at::Tensor& nodes) {
  auto& use = *use_of_.at(leaf.unsafeGetTensorImpl());
  LOCKSTEP_CHECK(canonical() && !use.reduction && !std::exchange(use.has_nodes, true),
                 "a leaf's nodes come twice in microbatch {}", microbatch_);
  auto taken = nodes;
  callback_(microbatch_, use.parameter, taken);
  const ModuleScope scope(use.place);
  use.replicas.add_nodes(microbatch_, taken);
  reduce_early(use);
}

void GradientAccumulator::take_gradient(const at::Tensor& leaf, const at::Tensor& gradient) {
  const auto use = use_of_.find(leaf.unsafeGetTensorImpl());
  LOCKSTEP_CHECK(use != use_of_.end(), "a gradient of what was not read through a leaf");
  add(*use->second, gradient);
}

void GradientAccumulator::add(Use& use, at::Tensor gradient) {
  if (!gradient.defined()) return;  // it was taken
  LOCKSTEP_CHECK(!use.reduction, "a leaf has a gradient after that of the step was reduced");
  const PhaseScope phase(Phase::kReduce);
  const ModuleScope scope(use.place);
  const at::NoGradGuard no_grad;
  callback_(microbatch_, use.parameter, gradient);
  use.sum = sum_of(use.sum, gradient);
  reduce_early(use);
}

/// The last microbatch gives a leaf its last gradient.
void GradientAccumulator::reduce_early(Use& use) {
  const bool is_last = static_cast<int64_t>(ended_.size()) + 1 == microbatches_;
  if (!is_last || !layout_of(use.leaf).mesh().world().observers().empty()) return;
  end_microbatch(microbatch_, use);
  if (auto sum = sum_of_step(use); sum.defined()) use.reduction = reductions_.add(std::move(sum), target_of(use.leaf));
}

void GradientAccumulator::end_microbatch(int64_t microbatch, Use& use) {
  if (!canonical() || use.reduction) return;
  if (microbatches_ > 1 && use.sum.defined()) require_one_use(use.sum, use.reader);
  if (!std::exchange(use.has_nodes, false)) use.replicas.add(microbatch, std::exchange(use.sum, {}));
}

void GradientAccumulator::end_microbatch(int64_t microbatch) {
  LOCKSTEP_CHECK(microbatch >= 0 && microbatch < microbatches_ && ended_.insert(microbatch).second,
                 "microbatch {} of {} ends twice or is none", microbatch, microbatches_);
  reads_.erase(microbatch);
  const PhaseScope phase(Phase::kReduce);
  const at::NoGradGuard no_grad;
  for (auto& [key, use] : uses_) {
    const ModuleScope scope(use->place);
    end_microbatch(microbatch, *use);
  }
}

at::Tensor GradientAccumulator::sum_of_step(Use& use) {
  return canonical() ? use.replicas.finish() : std::exchange(use.sum, {});
}

std::vector<at::Tensor> GradientAccumulator::finish() {
  const PhaseScope phase(Phase::kReduce);
  const at::NoGradGuard no_grad;
  LOCKSTEP_CHECK_EQ(ended_.size(), static_cast<size_t>(microbatches_), "microbatches have ended");
  for (auto& [key, use] : uses_) {
    const ModuleScope scope(use->place);
    if (use->reduction) continue;
    auto sum = sum_of_step(*use);
    if (!sum.defined()) continue;
    if (canonical()) tell_tensor(sum, "accumulate_gradients", "");
    use->reduction = reductions_.add(std::move(sum), target_of(use->leaf));
  }
  ended_.clear();
  std::vector<at::Tensor> gradients(parameters_.size());
  const auto reduced = reductions_.finish();
  for (auto& [key, use] : uses_) {
    const ModuleScope scope(names_[use->parameter]);
    if (!use->reduction) continue;
    auto& gradient = gradients[use->parameter];
    gradient = sum_of(gradient, reduced[*std::exchange(use->reduction, std::nullopt)]);
  }
  for (size_t p = 0; p < gradients.size(); ++p) {
    const ModuleScope scope(names_[p]);
    if (!gradients[p].defined())
      gradients[p] = redistribute_values(at::zeros_like(parameters_[p]), target_of(parameters_[p]), "redistribute");
  }
  return gradients;
}

void GradientAccumulator::restart() {
  uses_.clear();
  use_of_.clear();
  reads_.clear();
  ended_.clear();
  reductions_.restart();
}

}  // namespace lockstep::trainer
