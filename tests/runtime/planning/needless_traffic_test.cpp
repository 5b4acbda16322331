// What needs nothing of other ranks sends nothing, in any layouts: a new tensor like another, a view that adds or
// drops dimensions of one element.
#include <ATen/Functions.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "fuzz/cases/tensors.h"
#include "fuzz/trials/rule_trial.h"
#include "runtime/planning/rules/built_in_rules.h"
#include "tests/support/mutants.h"
#include "tests/support/test_name.h"

namespace lockstep::testing {
namespace {

/// Runs the op; fails if anything was sent by the time that its result is there.
template <class Make>
at::Tensor in_silence(const std::string& what, const at::Tensor& x, const Make& make) {
  auto& traffic = layout_of(x).mesh().world().traffic();
  const auto line =
      fmt::format("{} of {} {} on {}", what, c10::str(x.sizes()), layout_of(x).text(), layout_of(x).mesh().text());
  traffic.clear();
  at::Tensor made = make(x);
  sharded(made).shards()->local_tensors();
  if (traffic.bytes() > 0) RC_FAIL(fmt::format("{} sends {} bytes", line, traffic.bytes()));
  return made;
}

void a_tensor_like_another_is_made_in_silence(const OpCase& op_case, const Rules& rules) {
  const Trial trial(op_case, rules);
  const auto plain = trial.call().tensor(0);
  ++compared_cases()[op_case.op];
  in_silence(op_case.op, scatter(plain, draw_layout(trial.mesh(), plain)),
             [&](const at::Tensor& x) { return run(trial.call().op, with_tensors(trial.call(), {x}))[0]; });
}

/// Any layout that a view passes on: a Partial of another kind than a sum is reduced first.
Layout draw_linear_layout(const Mesh& mesh, const at::Tensor& tensor) {
  auto placements = draw_layout(mesh, tensor).placements();
  for (auto& placement : placements)
    if (placement.is_partial()) placement.reduction = Reduction::kSum;
  return Layout(mesh, std::move(placements));
}

void ones_come_and_go_in_silence(const Rules& rules) {
  const DrawnMesh drawn(Domain::kDeclared, rules, false);
  Sizes sizes;
  for (int d = *rc::gen::inRange(1, 4); d > 0; --d) sizes.push_back(*rc::gen::inRange(1, 7));
  Sizes more = sizes;
  for (int i = *rc::gen::inRange(1, 3); i > 0; --i)
    more.insert(more.begin() + *rc::gen::inRange<ptrdiff_t>(0, static_cast<ptrdiff_t>(more.size()) + 1), 1);
  const auto plain = exact_tensor(sizes);
  const auto x = scatter(plain, draw_linear_layout(*drawn.mesh, plain));
  const auto y = in_silence("view as " + c10::str(more), x, [&](const at::Tensor& t) { return t.view(more); });
  const auto back = in_silence("view back", y, [&](const at::Tensor& t) { return t.view(sizes); });
  const auto what = difference(back, plain, {}, true);
  if (!what.empty()) RC_FAIL(what);
}

std::vector<OpCase> rows_like_another() {
  std::vector<OpCase> all;
  for (const auto& op_case : op_cases()) {
    const auto* rule = built_in_rules()->find(op_case.op);
    if (rule != nullptr && (rule->traits & Rule::kReadsSizesOnly) != 0) all.push_back(op_case);
  }
  return all;
}

class LikeAnother : public ::testing::TestWithParam<OpCase> {};

TEST_P(LikeAnother, IsMadeInSilence) {
  const auto failure = failure_of_counted(GetParam().op + "/silence", GetParam().op, case_count(kMutantCases), [&] {
    a_tensor_like_another_is_made_in_silence(GetParam(), built_in_rules());
  });
  if (!failure.empty()) FAIL() << failure;
}

INSTANTIATE_TEST_SUITE_P(Rows, LikeAnother, ::testing::ValuesIn(rows_like_another()), test_name);

TEST(Ones, ComeAndGoInSilence) {
  expect_holds([] { ones_come_and_go_in_silence(built_in_rules()); });
}

/// Whole operands and results, whatever they were.
OpSharding gathered(const Call& call) {
  OpSharding sharding;
  sharding.operands = {OpShardingDims(static_cast<size_t>(call.dims(0)), OpShardingDim{})};
  sharding.results = {OpShardingDims(call.results[0].sizes.size(), OpShardingDim{})};
  return sharding;
}

TEST(Silence, ShowsWhatGathers) {
  auto made = *built_in_rules()->find("new_zeros"), seen = *built_in_rules()->find("view");
  made.traits &= ~unsigned{Rule::kReadsSizesOnly};
  made.sharding = seen.sharding = gathered;
  const auto rules = built_in_rules()->with(made)->with(seen);
  const auto row = std::find_if(op_cases().begin(), op_cases().end(), [](auto& c) { return c.op == "new_zeros"; });
  expect_noticed("new_zeros gathers", [&] { a_tensor_like_another_is_made_in_silence(*row, rules); });
  expect_noticed("a view gathers", [&] { ones_come_and_go_in_silence(rules); });
}

}  // namespace
}  // namespace lockstep::testing
