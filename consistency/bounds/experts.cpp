// Experts' rows, and products of them.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include "consistency/bounds/families.h"
#include "runtime/own_ops/expert_ops.h"

namespace lockstep::bounds {
namespace {

std::optional<at::Tensor> weights(const ExactCall& call) {
  return call.argument("weights").isTensor() ? std::optional(call.magnitude("weights")) : std::nullopt;
}

/// One product.
at::Tensor rows(const ExactCall& call) {
  const auto all =
      mesh_ops::expert_rows(call.magnitude("x"), call.tensor("experts"), weights(call), call.argument("count").toInt());
  return call.rounded(2, all);
}

/// A product and a sum for each choice.
at::Tensor sums(const ExactCall& call) {
  const auto experts = call.tensor("experts");
  return call.rounded(2 * static_cast<double>(experts.size(-1)) + 2,
                      mesh_ops::expert_sums(call.magnitude("rows"), experts, weights(call)));
}

at::Tensor factors(const ExactCall& call) {
  return call.rounded(2, mesh_ops::expert_factors(call.magnitude("rows"), call.magnitude("x"), call.tensor("experts")));
}

at::Tensor linear(const ExactCall& call) {
  return call.rounded(static_cast<double>(call.tensor("rows").size(-1)) + 2,
                      mesh_ops::expert_linear(call.magnitude("rows"), call.magnitude("weight")));
}

double positions(const ExactCall& call) { return static_cast<double>(call.tensor("rows").size(2)); }

at::Tensor gradient(const ExactCall& call) {
  const auto samples = static_cast<double>(call.tensor("rows").size(0));
  return call.rounded(samples * positions(call) + 2,
                      mesh_ops::expert_weight_gradient(call.magnitude("gradient"), call.magnitude("rows")));
}

at::Tensor sample_gradient(const ExactCall& call) {
  return call.rounded(positions(call) + 2,
                      mesh_ops::expert_sample_weight_gradient(call.magnitude("gradient"), call.magnitude("rows")));
}

constexpr Row kRows[] = {
    row<rows>("mesh::expert_rows"),
    row<sums>("mesh::expert_sums"),
    row<factors>("mesh::expert_factors"),
    row<linear>("mesh::expert_linear"),
    row<gradient>("mesh::expert_weight_gradient"),
    row<sample_gradient>("mesh::expert_sample_weight_gradient"),
};

}  // namespace

std::span<const Row> experts() { return kRows; }

}  // namespace lockstep::bounds
