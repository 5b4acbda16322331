#include "models/families/experts.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include "models/sizes.h"
#include "runtime/own_ops/expert_ops.h"

namespace lockstep::models {
namespace {

using at::Tensor;

/// Hidden units that are cut together.
int64_t unit_of(const ExpertOptions& experts, const LlamaOptions& dense) {
  return dense.cut_between_leaves ? leaf_of(experts.hidden) : 1;
}

LlamaOptions shared_sizes(const ExpertOptions& experts, LlamaOptions dense) {
  dense.hidden = experts.shared * experts.hidden;
  return dense;
}

}  // namespace

Experts::Experts(Module& owner, std::string name, const ExpertOptions& o, const LlamaOptions& dense, int64_t layer)
    : Module(owner, std::move(name)),
      gate_(*this, "w1", {o.count, o.hidden, dense.width}, "experts expert_ffn embed", truncated(0.02),
            {1, unit_of(o, dense), 1}),
      down_(*this, "w2", {o.count, dense.width, o.hidden}, "experts embed expert_ffn",
            truncated(depth_deviation(layer)), {1, 1, unit_of(o, dense)}),
      up_(*this, "w3", {o.count, o.hidden, dense.width}, "experts expert_ffn embed", truncated(depth_deviation(layer)),
          {1, unit_of(o, dense), 1}) {}

Tensor Experts::forward(const Tensor& rows) {
  const auto open = scope();
  const auto map = [&rows](const Tensor& x, const Tensor& weight) {
    return given_as(rows, mesh_ops::expert_linear(widened_for(weight, x), weight));
  };
  const auto gate = at::silu(map(rows, gate_));
  return map(at::mul(gate, map(rows, up_)), down_);
}

MixtureOfExperts::MixtureOfExperts(Module& owner, std::string name, const ExpertOptions& options,
                                   const LlamaOptions& dense, int64_t layer)
    : Module(owner, std::move(name)),
      options_(options),
      router_(*this, "router", options, dense.width, layer),
      experts_(*this, "experts", options, dense, layer) {
  if (options.shared > 0)
    shared_ = std::make_unique<FeedForward>(*this, "shared_experts", shared_sizes(options, dense), layer);
  if (!(options.balance_rate > 0)) return;
  bias_ = std::make_unique<Parameter>(*this, "expert_bias", std::vector<int64_t>{options.count}, "router",
                                      Initial::fill(0));
  bias_->make_buffer();
}

Tensor MixtureOfExperts::forward(const Tensor& x) {
  const auto open = scope();
  auto chosen = routed(x);
  if (!shared_) return chosen;
  const auto shared = shared_->forward(annotate(x, "batch length embed"));
  return at::add(chosen, annotate(shared, "batch norm_length embed"));
}

/// Rows go to where their experts are, and back to where each position is once.
Tensor MixtureOfExperts::routed(const Tensor& x) {
  using Weights = std::optional<Tensor>;
  const auto routing = router_.forward(x, bias_.get());
  const bool before = options_.score_before_experts;
  const auto rows =
      mesh_ops::expert_rows(x, routing.experts, before ? Weights(routing.weights) : std::nullopt, options_.count);
  const auto given = experts_.forward(annotate(rows, "expert_batch experts expert_length embed"));
  const auto weights = before ? std::nullopt : Weights(routing.weights);
  return mesh_ops::expert_sums(annotate(given, "batch . norm_length embed"), routing.experts, weights);
}

}  // namespace lockstep::models
