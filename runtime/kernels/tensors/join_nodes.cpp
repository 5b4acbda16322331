#include "runtime/kernels/tensors/join_nodes.h"

#include <ATen/Functions.h>

#include <algorithm>

#include "runtime/kernels/sums/joined_sum_loops.h"
#include "runtime/kernels/tensors/parallel.h"

namespace lockstep {
namespace {

/// Rounded nodes below one that is not are stored as wide as that.
at::Tensor stacked(std::vector<at::Tensor>& sums) {
  auto widest = sums[0].scalar_type();
  for (const auto& sum : sums) widest = c10::promoteTypes(widest, sum.scalar_type());
  for (auto& sum : sums) sum = sum.to(widest);
  return at::stack(sums);
}

/// One dtype in which sums are kept as they are, each array in one piece.
bool can_pass_once(std::span<const OrderedNode> nodes, const RoundedLevels& rounding) {
  constexpr size_t kLeast = 3;  // of two LibTorch makes one pass as well
  const auto dtype = nodes.empty() ? c10::kHalf : nodes[0].value.scalar_type();
  const bool is_offered = dtype == c10::kFloat || dtype == c10::kDouble;
  return is_offered && nodes.size() >= kLeast && rounding.levels == 0 &&
         std::ranges::all_of(nodes, [&](const OrderedNode& each) {
           return each.value.scalar_type() == dtype && each.value.is_cpu() && each.value.is_contiguous() &&
                  each.value.sizes() == nodes[0].value.sizes();
         });
}

template <class T>
at::Tensor joined_in_one_pass(const SumTree& tree, std::span<const OrderedNode> nodes) {
  constexpr int64_t kGrain = 1 << 15;
  std::vector<SumNode> places;
  std::vector<const T*> from;
  for (const auto& [node, value] : nodes) places.push_back(node), from.push_back(value.template const_data_ptr<T>());
  const kernels::JoinedSum sum(tree, places);
  auto sizes = nodes[0].value.sizes().vec();
  sizes.insert(sizes.begin(), sum.parts());
  auto result = at::empty(sizes, nodes[0].value.options());
  const int64_t count = nodes[0].value.numel();
  std::vector<T*> to;
  for (int64_t p = 0; p < sum.parts(); ++p) to.push_back(result.template mutable_data_ptr<T>() + p * count);
  kernels::parallel_for(0, count, kGrain, [&](int64_t begin, int64_t end) { sum.run<T>(from, to, begin, end); });
  return result;
}

}  // namespace

at::Tensor join_nodes(const SumTree& tree, std::span<const OrderedNode> nodes, const at::TensorOptions& options,
                      at::IntArrayRef sizes, const RoundedLevels& rounding) {
  if (can_pass_once(nodes, rounding))
    return nodes[0].value.scalar_type() == c10::kFloat ? joined_in_one_pass<float>(tree, nodes)
                                                       : joined_in_one_pass<double>(tree, nodes);
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
