// Rules broken on purpose: the properties of the op table notice each of them.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include "fuzz/trials/rule_properties.h"
#include "runtime/planning/rules/built_in_rules.h"

namespace lockstep::testing {
namespace {

struct Mutant {
  const char* fault;
  const char* op;
  std::function<void(Rule&)> breaks;
};

/// The plain op on the shards: no offsets, no global counts.
void local_as_it_is(const LocalCall& call, Stack& stack) { call.op.callBoxed(stack); }

/// The padding index compares with global tokens, but rows are counted from the shard's first.
void embedding_without_offset(const LocalCall& call, Stack& stack) {
  const auto table = stack[0].toTensor(), tokens = stack[1].toTensor();
  if (table.size(0) == 0)
    return void(stack = {at::zeros(call.plan.results[0]->local_sizes[call.index], table.options())});
  stack = {at::embedding(table, tokens.remainder(table.size(0)))};
}

/// Classes are counted within the shard, as if it began at each of its multiples.
template <size_t kLogits, size_t kTarget>
void targets_without_offset(const LocalCall& call, Stack& stack) {
  const auto classes = stack[kLogits].toTensor().size(-1);
  const auto target = stack[kTarget].toTensor();
  stack[kTarget] = classes > 0 ? at::where(target < 0, target, target.remainder(classes)) : at::full_like(target, -1);
  call.op.callBoxed(stack);
}

/// Every rank draws the first elements of the stream.
void uniform_of_the_rank(const LocalCall& call, Stack& stack) {
  const auto self = stack[0].toTensor();
  stack = {call.plan.written >= 0 ? self.fill_(0.25) : at::full_like(self, 0.25)};
}

/// What the first dimensions share is cut, whatever the sizes: a view of [12, 8] cut along 8 as one of [16, 6].
OpSharding view_of_equal_dims(const Call& call) {
  OpSharding sharding;
  sharding.operands.emplace_back();
  sharding.results.emplace_back();
  for (int d = 0; d < call.dims(0); ++d) sharding.operands[0].push_back({d});
  for (int d = 0; d < static_cast<int>(call.results[0].sizes.size()); ++d) sharding.results[0].push_back({d});
  sharding.can_reduce = false;
  return sharding;
}

void set_linear(Rule& rule, const char* linearity) { rule.linearity = linearity; }
void set_dims(Rule& rule, const char* dims) {
  rule.dims = dims;
  rule.sharding = nullptr;
}

std::vector<Mutant> mutants() {
  return {
      {"relu of a Partial", "relu", [](Rule& r) { set_linear(r, "e"); }},
      {"exp of a Partial", "exp", [](Rule& r) { set_linear(r, "e"); }},
      {"a scalar added on every rank", "add.Scalar", [](Rule& r) { set_linear(r, "e"); }},
      {"a product of two Partials", "mul.Tensor", [](Rule& r) { set_linear(r, "jj"); }},
      {"a Partial divisor", "div.Tensor", [](Rule& r) { set_linear(r, "ee"); }},
      {"a sum of a Partial and a whole tensor", "add.Tensor", [](Rule& r) { set_linear(r, "e"); }},
      {"a maximum of Partials", "maximum", [](Rule& r) { set_linear(r, "j"); }},
      {"a square of a Partial", "mesh::sum_of_squares", [](Rule& r) { set_linear(r, "e"); }},
      {"local maxima summed", "amax", [](Rule& r) { r.traits = Rule::kPlain; }},
      {"local sums maximised", "sum.dim_IntList", [](Rule& r) { r.traits = Rule::kMax; }},
      {"a mean over the local count", "mean", [](Rule& r) { r.local = local_as_it_is; }},
      {"a bias on every rank", "linear", [](Rule& r) { set_linear(r, "ee-"); }},
      {"a matrix added on every rank", "addmm", [](Rule& r) { set_linear(r, "-ee"); }},
      {"rows and columns of a product swapped", "mm", [](Rule& r) { set_dims(r, "mk,kn->nm"); }},
      {"a contraction cut in one factor", "mm", [](Rule& r) { set_dims(r, "mK,kn->mn"); }},
      {"a batch contracted", "bmm", [](Rule& r) { set_dims(r, "bmk,ckn->bmn"); }},
      {"softmax along the cut", "_softmax", [](Rule& r) { set_dims(r, "...->..."); }},
      {"a norm along the cut", "mesh::rms_norm",
       [](Rule& r) {
         set_dims(r, "...d,d->...d,...");
         r.traits = Rule::kPlain;
       }},
      {"a transposition that keeps the cut", "transpose.int", [](Rule& r) { set_dims(r, "...->..."); }},
      {"a slice of each shard", "slice.Tensor", [](Rule& r) { set_dims(r, "...->..."); }},
      {"a view that keeps the cut", "view", [](Rule& r) { r.sharding = view_of_equal_dims; }},
      {"tokens without the shard's offset", "embedding", [](Rule& r) { r.local = embedding_without_offset; }},
      {"targets without the shard's offset", "mesh::pick_class",
       [](Rule& r) { r.local = targets_without_offset<0, 1>; }},
      {"targets without the offset, backward", "mesh::cross_entropy_backward",
       [](Rule& r) { r.local = targets_without_offset<1, 3>; }},
      {"a causal mask from the shard's first row", "mesh::attention", [](Rule& r) { r.local = local_as_it_is; }},
      {"random numbers by local index", "uniform", [](Rule& r) { r.local = uniform_of_the_rank; }},
  };
}

const OpCase& case_of(const std::string& op) {
  for (const auto& entry : op_cases())
    if (entry.op == op) return entry;
  throw std::invalid_argument(op);
}

std::string fault_name(const ::testing::TestParamInfo<Mutant>& info) {
  std::string name = info.param.fault;
  for (auto& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return name;
}

class RulesMutants : public ::testing::TestWithParam<Mutant> {};

TEST_P(RulesMutants, IsNoticed) {
  const auto& built_in = built_in_rules();
  Rule rule = built_in->rows().at(GetParam().op);
  GetParam().breaks(rule);
  const auto rules = built_in->with(rule);
  const auto& op_case = case_of(GetParam().op);
  const auto counted = compared_cases();
  const auto first = failure_of("mutant", kCandidateCases, [&] { candidates_equal_one_device(op_case, rules); });
  const auto second = failure_of("mutant", kLayoutCases, [&] { random_layouts_equal_one_device(op_case, rules); });
  compared_cases() = counted;
  EXPECT_FALSE(first.empty() && second.empty()) << GetParam().fault;
  // One line to paste: the call, its layouts, the mesh; and how RapidCheck finds it again.
  for (const auto* part : {"(", "[a=", ") on mesh a=", "RC_PARAMS=\"reproduce="})
    EXPECT_NE((first + second).find(part), std::string::npos) << part << " in: " << first << second;
}

INSTANTIATE_TEST_SUITE_P(Faults, RulesMutants, ::testing::ValuesIn(mutants()), fault_name);

}  // namespace
}  // namespace lockstep::testing
