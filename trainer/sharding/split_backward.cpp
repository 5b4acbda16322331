#include "trainer/sharding/split_backward.h"

#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/variable.h>

#include <utility>

#include "core/error.h"
#include "runtime/context/run_context.h"
#include "runtime/context/world.h"
#include "runtime/tensor/sharded_tensor.h"
#include "trainer/gradients/replica_sums.h"
#include "trainer/gradients/taken_gradient.h"

namespace lockstep::trainer {

std::vector<at::Tensor> SplitBackward::cut(std::vector<at::Tensor> gathered) {
  for (auto& tensor : gathered) {
    if (!tensor.requires_grad()) continue;
    const auto leaf = tensor.tensor_data().requires_grad_();
    deferred_.allow(leaf, cuts_.size());
    cuts_.push_back({torch::autograd::impl::gradient_edge(tensor), taken_gradient(leaf), buckets_});
    tensor = leaf;
  }
  ++buckets_;
  return gathered;
}

void SplitBackward::take(Cut& cut, const at::Tensor& gradient) {
  const bool has_other = cut.gradient->defined() && !cut.was_deferred;
  if (has_other && layout_of(gradient).mesh().world().canonical())
    fail<BadInput>(
        "{}: a weight is read once, and used by a linear map and by something else; a schedule with backwards in two "
        "parts needs it read for each use.",
        RunContext::current().module());
  *cut.gradient = sum_of(*cut.gradient, gradient);
  cut.was_deferred = true;
}

void SplitBackward::finish_bucket(size_t bucket) {
  torch::autograd::edge_list edges;
  torch::autograd::variable_list gradients;
  for (auto& cut : cuts_) {
    if (cut.bucket != bucket || !cut.gradient->defined()) continue;
    edges.push_back(std::move(cut.gathered));
    gradients.push_back(std::exchange(*cut.gradient, {}));
  }
  if (!edges.empty())
    torch::autograd::Engine::get_default_engine().execute(edges, gradients, /*keep_graph=*/false,
                                                          /*create_graph=*/false, /*accumulate_grad=*/true);
}

/// A bucket goes on as soon as it has all that was put off of it; those of which nothing was, in the end, the last one
/// first, as in a backward.
void SplitBackward::finish() {
  const auto waiting = deferred_.waiting();
  std::vector<size_t> left(buckets_);
  for (const auto number : waiting) ++left[cuts_.at(number).bucket];
  for (const auto number : waiting) {
    auto& cut = cuts_[number];
    deferred_.run_first([&](const at::Tensor& gradient) { take(cut, gradient); });
    if (--left[cut.bucket] == 0) finish_bucket(cut.bucket);
  }
  for (size_t bucket = buckets_; bucket-- > 0;) finish_bucket(bucket);
  cuts_.clear();
  buckets_ = 0;
}

}  // namespace lockstep::trainer
