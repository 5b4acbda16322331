#include "runtime/kernels/tensors/join_nodes.h"

#include <ATen/Functions.h>

#include <algorithm>

namespace lockstep {
namespace {

/// Rounded nodes below one that is not are stored as wide as that.
at::Tensor stacked(std::vector<at::Tensor>& sums) {
  auto widest = sums[0].scalar_type();
  for (const auto& sum : sums) widest = c10::promoteTypes(widest, sum.scalar_type());
  for (auto& sum : sums) sum = sum.to(widest);
  return at::stack(sums);
}

}  // namespace

at::Tensor join_nodes(const SumTree& tree, std::span<const OrderedNode> nodes, const at::TensorOptions& options,
                      at::IntArrayRef sizes, const RoundedLevels& rounding) {
  SumJoiner<at::Tensor> joiner(tree);
  const auto at_node = [&](const SumNode& node, at::Tensor value) {
    return rounding.rounds(tree, node) ? value.to(rounding.dtype) : value;
  };
  const auto join = [](const at::Tensor& left, const at::Tensor& right) { return at::add(left, right); };
  for (const auto& [node, value] : nodes) joiner.add(node, value, join, at_node);
  std::vector<at::Tensor> sums;
  for (auto& part : joiner.parts()) sums.push_back(std::move(part.value));
  if (sums.empty()) sums.push_back(at::zeros(sizes, options));
  if (sums.size() == 1 && nodes.size() > 1) return sums[0].unsqueeze(0);  // new already: it was added up
  return stacked(sums);
}

}  // namespace lockstep
