#include "trainer/sharding/gradient_accumulator.h"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include "core/error.h"
#include "runtime/context/scopes.h"
#include "runtime/context/told_values.h"
#include "runtime/context/world.h"
#include "runtime/redistribution/redistribute.h"
#include "runtime/tensor/sharded_tensor.h"

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

std::vector<at::Tensor> reduced_to(const std::vector<at::Tensor>& sums, const std::vector<Layout>& layouts,
                                   const std::string& place) {
  if (sums.empty()) return {};
  const ModuleScope module(place);
  const CommunicationScope scope(layouts[0].mesh().world(), "reduce_gradients");
  return redistribute_bucket(sums, layouts);
}

}  // namespace

/// Takes a leaf's gradient before autograd stores it. (Autograd would copy it, which a sum must not be read for that is
/// not finished.)
struct GradientAccumulator::Hook : torch::autograd::FunctionPreHook {
  Hook(GradientAccumulator& owner, size_t parameter, std::string place, at::Tensor& sum)
      : owner_(owner), parameter_(parameter), place_(std::move(place)), sum_(sum) {}
  torch::autograd::variable_list operator()(const torch::autograd::variable_list& gradients) override {
    const PhaseScope phase(Phase::kReduce);
    const ModuleScope scope(place_);
    const at::NoGradGuard no_grad;
    auto gradient = gradients[0];
    if (gradient.defined()) owner_.callback_(owner_.microbatch_, parameter_, gradient);
    sum_ = sum_of(sum_, gradient);
    return {at::Tensor()};
  }

 private:
  GradientAccumulator& owner_;
  size_t parameter_;
  std::string place_;
  at::Tensor& sum_;
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
  Use(GradientAccumulator& owner, size_t number, const std::string& reader)
      : parameter(number),
        place(place_of(owner.names_[number], reader)),
        leaf(owner.parameters_[number].tensor_data().requires_grad_()),
        replicas(layout_of(leaf).mesh(), owner.microbatches_, owner.nodes_) {
    torch::autograd::impl::add_hook(leaf, std::make_unique<Hook>(owner, number, place, sum));
  }
  ~Use() { torch::autograd::impl::clear_hooks(leaf); }
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;

  size_t parameter;  ///< its number
  std::string place;
  at::Tensor leaf;
  at::Tensor sum;          ///< of the step's microbatches so far (native) or of this one (canonical)
  bool has_nodes = false;  ///< this microbatch's are in `replicas` already
  ReplicaSums replicas;
};

GradientAccumulator::GradientAccumulator(std::vector<at::Tensor> parameters, const Batching& batching,
                                         Numerics numerics, std::vector<std::string> names, std::string place)
    : parameters_(std::move(parameters)),
      names_(std::move(names)),
      place_(std::move(place)),
      microbatches_(batching.accumulation_steps),
      nodes_(batching.nodes_per_microbatch()),
      numerics_(numerics) {
  names_.resize(parameters_.size());
  for (size_t p = 0; p < parameters_.size(); ++p) index_[parameters_[p].unsafeGetTensorImpl()] = p;
}

GradientAccumulator::~GradientAccumulator() = default;

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
  LOCKSTEP_CHECK(canonical() && !std::exchange(use.has_nodes, true), "a leaf's nodes come twice in microbatch {}",
                 microbatch_);
  auto taken = nodes;
  callback_(microbatch_, use.parameter, taken);
  const ModuleScope scope(use.place);
  use.replicas.add_nodes(microbatch_, taken);
}

void GradientAccumulator::end_microbatch(int64_t microbatch) {
  LOCKSTEP_CHECK(microbatch >= 0 && microbatch < microbatches_ && ended_.insert(microbatch).second,
                 "microbatch {} of {} ends twice or is none", microbatch, microbatches_);
  reads_.erase(microbatch);
  if (!canonical()) return;
  const PhaseScope phase(Phase::kReduce);
  const at::NoGradGuard no_grad;
  for (auto& [key, use] : uses_) {
    const ModuleScope scope(use->place);
    if (microbatches_ > 1 && use->sum.defined()) require_one_use(use->sum, std::get<1>(key));
    if (!std::exchange(use->has_nodes, false)) use->replicas.add(microbatch, std::exchange(use->sum, {}));
  }
}

std::vector<at::Tensor> GradientAccumulator::finish() {
  const PhaseScope phase(Phase::kReduce);
  const at::NoGradGuard no_grad;
  LOCKSTEP_CHECK_EQ(ended_.size(), static_cast<size_t>(microbatches_), "microbatches have ended");
  std::vector<size_t> owners;
  std::vector<at::Tensor> sums;
  std::vector<Layout> layouts;
  for (auto& [key, use] : uses_) {
    const ModuleScope scope(use->place);
    auto sum = canonical() ? use->replicas.finish() : std::exchange(use->sum, {});
    if (!sum.defined()) continue;
    owners.push_back(std::get<0>(key));
    if (canonical()) tell_tensor(sum, "accumulate_gradients", "");
    sums.push_back(std::move(sum));
    layouts.push_back(layout_of(parameters_[owners.back()]));
  }
  ended_.clear();
  std::vector<at::Tensor> gradients(parameters_.size());
  const auto reduced = reduced_to(sums, layouts, place_);
  for (size_t i = 0; i < reduced.size(); ++i) {
    const ModuleScope scope(names_[owners[i]]);
    gradients[owners[i]] = sum_of(gradients[owners[i]], reduced[i]);
  }
  for (size_t p = 0; p < gradients.size(); ++p) {
    const ModuleScope scope(names_[p]);
    if (!gradients[p].defined()) gradients[p] = at::zeros_like(parameters_[p]);
  }
  return gradients;
}

void GradientAccumulator::restart() {
  uses_.clear();
  use_of_.clear();
  reads_.clear();
  ended_.clear();
}

}  // namespace lockstep::trainer
