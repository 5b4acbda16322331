// Canonical numerics broken on purpose, through the rules of the mesh alone: the comparison with one rank's bits
// notices each fault.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include "fuzz/trials/canonical_trial.h"
#include "runtime/own_ops/mesh_ops.h"
#include "runtime/planning/rules/built_in_rules.h"

namespace lockstep::testing {
namespace {

using at::Tensor;
using torch::jit::Stack;

const RuleSet& canonical_rules() { return *built_in_rules(lockstep::Numerics::kCanonical); }

void original(const LocalCall& call, Stack& stack) {
  const auto* rule = canonical_rules().find(op_name(call.op));
  rule->local ? rule->local(call, stack) : call.op.callBoxed(stack);
}

/// The plain op on the shards; where the result is an ordered Partial it is the first node and the others are zero.
void native(const LocalCall& call, Stack& stack) {
  call.op.callBoxed(stack);
  for (size_t r = 0; r < stack.size() && r < call.plan.results.size(); ++r) {
    const auto& spec = *call.plan.results[r];
    if (!spec.layout.ordered_sum()) continue;
    const auto value = stack[r].toTensor();
    const auto wide = value.scalar_type() == c10::kDouble ? c10::kDouble : c10::kFloat;
    auto nodes = at::zeros(spec.local_sizes[call.index], value.options().dtype(wide));
    if (nodes.size(0) > 0) nodes[0].copy_(value);
    stack[r] = nodes;
  }
}

/// What a rank computed, changed where it is nodes.
template <class Change>
void change_nodes(const LocalCall& call, Stack& stack, const Change& change) {
  original(call, stack);
  for (size_t r = 0; r < stack.size(); ++r)
    if (call.plan.results[r]->layout.ordered_sum()) stack[r] = change(stack[r].toTensor());
}

void swapped_nodes(const LocalCall& call, Stack& stack) {
  change_nodes(call, stack, [](const Tensor& nodes) { return nodes.flip(0); });
}

/// Every rank adds its own nodes up, left to right.
void joined_by_rank(const LocalCall& call, Stack& stack) {
  change_nodes(call, stack, [](const Tensor& nodes) {
    auto joined = at::zeros_like(nodes);
    for (int64_t n = 0; n < nodes.size(0); ++n) joined[0].add_(nodes[n]);
    return joined;
  });
}

void rounded_nodes(const LocalCall& call, Stack& stack) {
  change_nodes(call, stack, [](const Tensor& nodes) { return nodes.to(at::kBFloat16).to(nodes.scalar_type()); });
}

/// The elements of a sum from the last to the first.
template <size_t kFirst, size_t kSecond, int64_t kDim>
void reversed(const LocalCall& call, Stack& stack) {
  for (const size_t i : {kFirst, kSecond})
    if (stack[i].toTensor().dim() > 0) stack[i] = stack[i].toTensor().flip(kDim);
  original(call, stack);
}

template <size_t kArgument>
void rolled(const LocalCall& call, Stack& stack) {
  stack[kArgument] = stack[kArgument].toTensor().roll(1, 0);
  original(call, stack);
}

template <size_t kArgument>
void one_row_further(const LocalCall& call, Stack& stack) {
  stack[kArgument] = stack[kArgument].toInt() + 1;
  original(call, stack);
}

void mean_divided_first(const LocalCall& call, Stack& stack) {
  const auto x = stack[0].toTensor();
  stack[0] = x / static_cast<double>(std::max<int64_t>(x.numel(), 1));
  original(call, stack);
  stack = {stack[0].toTensor() * static_cast<double>(x.numel())};
}

/// A leaf begins one element late: dimension `kDim` (-1: the last) of the first operands is rotated.
template <size_t kOperands, int64_t kDim>
void late_leaves(const LocalCall& call, Stack& stack) {
  for (size_t i = 0; i < kOperands; ++i) stack[i] = stack[i].toTensor().roll(1, kDim);
  original(call, stack);
}

void maximum_of_the_shard(const LocalCall& call, Stack& stack) {
  const auto logits = stack[0].toTensor();
  if (logits.size(-1) > 0) stack[1] = logits.amax(-1);
  original(call, stack);
}

/// g * (x * r) rounded, then added.
void multiply_then_add(const LocalCall& call, Stack& stack) {
  stack[0] = stack[0].toTensor() * stack[1].toTensor();
  stack[1] = at::ones_like(stack[1].toTensor());
  original(call, stack);
}

/// The scale of clipping goes to the mean instead of the gradient: equal in real numbers.
void reassociated_adamw(const LocalCall& call, Stack& stack) {
  const double scale = stack[11].toDouble();
  stack[1] = stack[1].toTensor() * scale * 3 / 3;
  stack[11] = 1.0;
  original(call, stack);
}

void masked_elsewhere(const LocalCall& call, Stack& stack) {
  original(call, stack);
  const auto mask = stack[1].toTensor().roll(1);
  stack = {stack[0].toTensor(), mask};
}

void sum_in_double(const LocalCall& call, Stack& stack) {
  stack[0] = stack[0].toTensor().to(at::kFloat) * 1.0000001;
  original(call, stack);
}

/// Rounds before it adds: the sum of bfloat16 squares instead of integers.
void squares_in_float(const LocalCall&, Stack& stack) {
  const auto x = stack[0].toTensor().to(at::kFloat) * stack[1].toDouble();
  const auto total = (x * x).sum().to(at::kLong);
  stack = {at::stack({total.div(int64_t{1} << 32, "floor"), total.remainder(int64_t{1} << 32)})};
}

void losses_in_float(const LocalCall&, Stack& stack) {
  const auto sum = stack[0].toTensor().to(at::kFloat).sum().mul(0x1p24).to(at::kLong);
  stack = {at::stack({sum, at::zeros_like(sum)})};
}

void signed_maximum(const LocalCall&, Stack& stack) {
  const auto x = stack[0].toTensor();
  const auto wide = x.scalar_type() == at::kDouble ? x : x.to(at::kFloat);
  stack = {wide.numel() > 0 ? wide.amax() : at::zeros({}, wide.options())};
}

struct CanonicalMutant {
  const char* fault;
  const char* op;
  LocalFunction local;
  unsigned dropped = 0;  ///< traits
  bool gradients = false;
};

constexpr CanonicalMutant kMutants[] = {
    {"swapped leaves of a sum", "sum.dim_IntList", swapped_nodes},
    {"swapped leaves of all", "sum", swapped_nodes},
    {"late leaves of a linear", "linear", late_leaves<2, -1>},
    {"swapped samples of a weight gradient", "mesh::weight_gradient", swapped_nodes},
    {"swapped samples of a table", "embedding_dense_backward", swapped_nodes},
    {"late leaves of a softmax", "mesh::exponential_sum", late_leaves<1, -1>},
    {"late samples of a norm", "mesh::rms_norm_weight_gradient", late_leaves<1, -1>},
    {"join in rank order sum", "sum.dim_IntList", joined_by_rank},
    {"a tree over ranks batch", "bmm", native},
    {"join in rank order weight gradient", "mesh::weight_gradient", joined_by_rank},
    {"bf16 nodes of a product", "mm", rounded_nodes},
    {"bf16 nodes of a sum", "sum", rounded_nodes},
    {"bf16 nodes of a table", "embedding_dense_backward", rounded_nodes},
    {"a tree over ranks product", "mm", native},
    {"a tree over ranks linear", "linear", native},
    {"a tree over ranks matmul", "matmul", native},
    {"a tree over ranks sum", "sum", native},
    {"a leaf of the local size", "mesh::weight_gradient", native},
    {"a fused bias", "addmm", native},
    {"softmax by lanes", "_softmax", native},
    {"logarithms by lanes", "_log_softmax", native},
    {"a sigmoid with another tail", "sigmoid", native},
    {"a gelu with another tail", "gelu", native},
    {"a silu with another tail", "silu", native},
    {"an op that should refuse", "pow.Tensor_Tensor", native},
    {"positions of a table reversed", "embedding_dense_backward", reversed<0, 1, 0>},
    {"a product summed backward", "mm", nullptr},
    {"the mean divided before the sum", "mean", mean_divided_first},
    {"the mean divided on every rank", "mean", nullptr, Rule::kNoReduce},
    {"the maximum of the shard", "mesh::exponential_sum", maximum_of_the_shard},
    {"fma split", "mesh::rms_norm_weight_gradient", multiply_then_add},
    {"AdamW reassociated", "mesh::adamw", reassociated_adamw},
    {"dropout index shifted", "native_dropout", masked_elsewhere},
    {"RoPE index shifted", "mesh::rotate_pairs", rolled<1>},
    {"causal row shifted", "mesh::attention", one_row_further<5>},
    {"causal row shifted backward", "mesh::attention_backward", one_row_further<8>},
    {"a sum of other numbers", "sum", sum_in_double},
    {"the gradient norm in float", "mesh::scaled_squares", squares_in_float},
    {"the loss in float", "mesh::fixed_point_sum", losses_in_float},
    {"the maximum with its sign", "mesh::absolute_maximum", signed_maximum},
};

/// Contracted elements in another order on the ranks: k of mk and kn.
void product_backward(const LocalCall& call, Stack& stack) {
  stack[0] = stack[0].toTensor().flip(1);
  stack[1] = stack[1].toTensor().flip(0);
  original(call, stack);
}

const OpCase& case_of(const std::string& op) {
  for (const auto& entry : op_cases())
    if (entry.op == op) return entry;
  throw std::invalid_argument(op);
}

std::string fault_name(const ::testing::TestParamInfo<CanonicalMutant>& info) {
  std::string name = info.param.fault;
  for (auto& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return name;
}

class CanonicalMutants : public ::testing::TestWithParam<CanonicalMutant> {};

TEST_P(CanonicalMutants, IsNoticed) {
  const auto& mutant = GetParam();
  Rule rule = canonical_rules().rows().at(mutant.op);
  rule.traits &= ~mutant.dropped;
  if (rule.canonical == Rule::Canonical::kRefuses) rule.canonical = Rule::Canonical::kAsIs;  // it runs
  if (mutant.dropped == 0) rule.local = mutant.local ? mutant.local : product_backward;
  const auto rules = canonical_rules().with(rule);
  const auto counted = compared_cases();
  const auto& op_case = case_of(mutant.op);
  std::string failure;
  for (const auto reach : {Reach::kShort, Reach::kLong})  // as many cases as CanonicalRules has for the row
    if (failure.empty())
      failure = failure_of(
          "canonical mutant", canonical_case_count(op_case),
          [&] { canonical_bits_equal_one_rank(op_case, reach, false, rules); }, /*shrink=*/false);
  compared_cases() = counted;
  ASSERT_FALSE(failure.empty()) << mutant.fault;
  for (const auto* part : {"(", ") on mesh a=", "batch "}) EXPECT_NE(failure.find(part), std::string::npos) << failure;
}

INSTANTIATE_TEST_SUITE_P(Faults, CanonicalMutants, ::testing::ValuesIn(kMutants), fault_name);

}  // namespace
}  // namespace lockstep::testing
