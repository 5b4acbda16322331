#include "trainer/sharding/split_backward.h"

#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <set>

#include "core/error.h"
#include "trainer/sharding/replica_sums.h"
#include "trainer/sharding/taken_gradient.h"

namespace lockstep::trainer {

std::vector<at::Tensor> SplitBackward::cut(std::vector<at::Tensor> gathered) {
  for (auto& tensor : gathered) {
    if (!tensor.requires_grad()) continue;
    const auto leaf = tensor.tensor_data().requires_grad_();
    deferred_.allow(leaf);
    cuts_.push_back({std::exchange(tensor, leaf), leaf, taken_gradient(leaf)});
  }
  return gathered;
}

SplitBackward::Cut& SplitBackward::cut_of(const at::Tensor& leaf) {
  const auto found = std::find_if(cuts_.begin(), cuts_.end(), [&](const Cut& cut) { return cut.leaf.is_same(leaf); });
  LOCKSTEP_CHECK(found != cuts_.end(), "a gradient of what was not cut");
  return *found;
}

void SplitBackward::finish() {
  std::set<const Cut*> deferred;
  for (auto& [leaf, gradient] : deferred_.run()) {
    auto& cut = cut_of(leaf);
    if (deferred.insert(&cut).second && cut.gradient->defined())
      fail<BadInput>(
          "a weight is read once and used by a linear map and by something else; a schedule with backwards "
          "in two parts needs it read for each use.");
    *cut.gradient = sum_of(*cut.gradient, gradient);
  }
  std::vector<at::Tensor> gathered, gradients;
  for (auto& [tensor, leaf, gradient] : cuts_) {
    if (!gradient->defined()) continue;
    gathered.push_back(std::exchange(tensor, {}));
    gradients.push_back(std::exchange(*gradient, {}));
  }
  cuts_.clear();
  if (!gathered.empty()) torch::autograd::backward(gathered, gradients);
}

}  // namespace lockstep::trainer
