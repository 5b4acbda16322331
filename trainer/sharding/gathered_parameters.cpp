#include "trainer/sharding/gathered_parameters.h"

#include <ATen/Functions.h>
#include <torch/csrc/autograd/custom_function.h>

#include "core/error.h"
#include "runtime/context/scopes.h"
#include "runtime/context/world.h"
#include "runtime/tensor/sharded_tensor.h"
#include "trainer/gradients/block_reduction.h"

namespace lockstep::trainer {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr const char* kGather = "gather_parameters";

std::vector<Tensor> gathered_by(GatherOrder& order, at::TensorList parameters, const GatherRecipe& recipe) {
  if (recipe.layouts.empty()) return order.gather(parameters, recipe);
  const CommunicationScope scope(recipe.layouts[0].mesh().world(), kGather);
  return order.gather(parameters, recipe);
}

/// What backward knows of its parameters.
struct Leaves : torch::CustomClassHolder {
  Leaves(at::TensorList parameters, const GradientTaker& who) : tensors(parameters.vec()), taker(who) {}
  std::vector<Tensor> tensors;
  GradientTaker taker;
};

struct Gather : torch::autograd::Function<Gather> {
  static variable_list forward(AutogradContext* context, at::TensorList parameters, const GatherRecipe* recipe,
                               GatherOrder* order, const GradientTaker* taker) {
    context->saved_data["leaves"] = c10::IValue::make_capsule(c10::make_intrusive<Leaves>(parameters, *taker));
    auto gathered = gathered_by(*order, parameters, *recipe);
    variable_list frozen;
    for (size_t p = 0; p < gathered.size(); ++p) {  // a node of the graph needs a tensor of its own
      auto shards = std::make_shared<ShardSet>(*sharded(gathered[p]).shards());
      shards->make_read_only();
      gathered[p] = make_sharded(&spec_of(gathered[p]), std::move(shards));
      if (!parameters[p].requires_grad()) frozen.push_back(gathered[p]);
    }
    context->mark_non_differentiable(frozen);
    context->set_materialize_grads(false);  // what has no gradient gets none made up
    return gathered;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto leaves = c10::static_intrusive_pointer_cast<Leaves>(context->saved_data["leaves"].toCapsule());
    BlockReduction reduction(leaves->taker);
    std::vector<size_t> owners;
    for (size_t p = 0; p < gradients.size(); ++p)
      if (gradients[p].defined()) {
        reduction.add(leaves->tensors[p], std::exchange(gradients[p], {}));
        owners.push_back(p);
      }
    variable_list kept(owners.size());
    if (reduction.empty() || !leaves->taker.underway)
      reduction.finish(&kept);
    else
      leaves->taker.underway->add(std::move(reduction));
    for (size_t i = 0; i < owners.size(); ++i) gradients[owners[i]] = std::move(kept[i]);
    gradients.resize(gradients.size() + 3);  // of the recipe, the order and who takes them
    return gradients;
  }
};

}  // namespace

struct GatheredParameters::Source {
  std::vector<Tensor> parameters;
  GatherRecipe recipe;
  std::shared_ptr<GatherOrder> order;
  std::vector<std::shared_ptr<ShardSet>> sets;
  std::vector<Shards> again;  ///< gathered anew, until each set has taken its own
  std::vector<uint32_t> versions;

  Shards take(size_t p) {
    if (again.empty()) {
      check_unchanged();
      for (const auto& tensor : gathered_by(*order, parameters, recipe))
        again.push_back(sharded(tensor).shards()->whole());
    }
    return again[p].empty() ? fetch_alone(p) : std::move(again[p]);
  }
  Shards fetch_alone(size_t p) const {
    GatherRecipe alone{{recipe.layouts[p]}, {recipe.dtypes[p]}};
    if (!recipe.float8.empty()) alone.float8 = {recipe.float8[p]};
    const CommunicationScope scope(alone.layouts[0].mesh().world(), kGather);
    return sharded(order->gather_alone(parameters[p], alone)).shards()->whole();
  }
  void check_unchanged() const {
    for (size_t p = 0; p < parameters.size(); ++p)
      LOCKSTEP_CHECK_EQ(parameters[p]._version(), versions[p], "a parameter was written between forward and backward");
  }
};

GatheredParameters::GatheredParameters(const std::vector<Tensor>& parameters, GatherRecipe recipe,
                                       std::shared_ptr<GatherOrder> order, GradientTaker taker)
    : source_(std::make_shared<Source>(Source{parameters, std::move(recipe), std::move(order), {}, {}, {}})) {
  tensors_ = Gather::apply(at::TensorList(source_->parameters), &source_->recipe, source_->order.get(), &taker);
  for (size_t p = 0; p < tensors_.size(); ++p) {
    source_->sets.push_back(sharded(tensors_[p]).shards());
    source_->versions.push_back(static_cast<uint32_t>(parameters[p]._version()));
  }
}

void GatheredParameters::evict() {
  for (size_t p = 0; p < source_->sets.size(); ++p)
    source_->sets[p]->evict([source = source_, p] { return source->take(p); });
  source_->sets.clear();  // no cycle: the sets own the source from here on
}

}  // namespace lockstep::trainer
