// Mode ops: each op of a run beside one device's. Every row of the op table, and what models call above them, in any
// layouts, under both numerics: no alarm where nothing is wrong, one where a shard is.
#include "consistency/ops/op_check.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "consistency/bounds/error_bounds.h"
#include "core/error.h"
#include "fuzz/cases/tensors.h"
#include "fuzz/trials/canonical_trial.h"
#include "runtime/context/random.h"
#include "runtime/context/scopes.h"
#include "runtime/dispatch/op_results.h"
#include "runtime/plain/plain_tensors.h"
#include "runtime/planning/rules/built_in_rules.h"
#include "tests/support/test_name.h"

namespace lockstep::testing {
namespace {

using lockstep::Numerics;

/// Changes one element of a shard that an op computed, far beyond what rounding does.
class Spoiler final : public Observer {
 public:
  void after_op(const OpEvent& event, std::span<const c10::IValue> results) override {
    const auto* rule = event.plan.rule;
    if (has_spoiled_ || (rule && (rule->traits & Rule::kRearranges) != 0)) return;  // what shares an operand's bytes
    for (const auto& result : op_results(event, results))
      if (!result.is_alias) spoil(result.tensor);
  }
  bool has_spoiled() const { return has_spoiled_; }

 private:
  void spoil(const at::Tensor& tensor) {
    const PlainTensors guard;
    const auto& shards = sharded(tensor).shards()->local_tensors();
    double largest = 0;  // of parts of a sum, what another rank holds counts
    for (const auto& shard : shards) largest = std::max(largest, largest_of(shard));
    if (!(largest < 1e30)) return;  // nothing is said of what may be too large
    for (const auto& shard : shards) {
      if (has_spoiled_ || shard.numel() == 0) continue;
      auto element = shard.as_strided({}, {}, shard.storage_offset());
      // Attention of 16-bit scores that are large has large roundings.
      const double amount = element.is_floating_point() ? 1e12 : 1024;
      if (element.scalar_type() == c10::kBool)
        element.logical_not_();
      else if (element.scalar_type() == c10::kByte || (element.scalar_type() == c10::kLong && largest > 1e18))
        element.bitwise_not_();  // nothing is larger than what may be there
      else
        element.fill_(largest * 2 + amount);
      has_spoiled_ = true;
    }
  }
  static double largest_of(const at::Tensor& shard) {
    return shard.numel() == 0 ? 0 : shard.to(c10::kDouble).abs().nan_to_num(HUGE_VAL, HUGE_VAL).max().item<double>();
  }
  bool has_spoiled_ = false;
};

struct Checked {
  std::optional<Blame> blame;
  int64_t compared = 0;
  bool is_refused = false, is_spoiled = false;
};

at::Tensor placed(const Mesh& mesh, const at::Tensor& plain, const CanonicalCase::Operand& operand) {
  const Layout layout(mesh, operand.placements);
  const auto put = [&](const at::Tensor& values) {
    return mesh.world().canonical() ? distribute(values, layout) : scatter(values, layout);
  };
  return operand.turned ? put(plain.transpose(0, -1).contiguous()).transpose(0, -1) : put(plain);
}

void run_on(const Mesh& mesh, const CanonicalCase& trial) {
  const MeshScope mesh_scope(mesh);
  const BatchScope batch({.count = trial.batch_rows});
  std::vector<at::Tensor> operands;
  for (size_t i = 0; i < trial.operands.size(); ++i)
    operands.push_back(placed(mesh, trial.call.tensor(i), trial.operands[i]));
  if (trial.functions.first.empty()) {
    run(trial.call.op, with_tensors(trial.call, operands));
    return;
  }
  size_t weight = 0;
  sharded_gradients(trial.call, operands, {trial.functions.first},
                    [&](const at::Tensor& plain) { return placed(mesh, plain, trial.weight_places[weight++]); });
}

Checked check(const CanonicalCase& trial, Numerics numerics, bool spoils) {
  World::Options options;
  options.rank_count = 1;
  for (const auto& axis : trial.axes) options.rank_count *= static_cast<int>(axis.size);
  options.numerics = numerics;
  if (numerics == Numerics::kCanonical) options.rounded_levels = trial.rounded_levels;
  World world(options);
  const auto& mesh = world.mesh(trial.axes);
  Spoiler spoiler;
  OpCheck op_check(world, 1);
  std::optional<ObserverScope> spoiled;
  Checked checked;
  try {
    if (spoils) spoiled.emplace(world.observers(), spoiler);
    const ObserverScope watched(world.observers(), op_check);
    run_on(mesh, trial);
  } catch (const c10::Error&) {
    checked.is_refused = true;
  } catch (const BadInput&) {
    checked.is_refused = true;
  }
  checked.blame = op_check.blame();
  checked.compared = op_check.counts().compared_ops;
  checked.is_spoiled = spoiler.has_spoiled();
  return checked;
}

class OpCheckRows : public ::testing::TestWithParam<OpCase> {
 protected:
  void expect(bool spoils, Numerics numerics, int cases) const {
    const auto& op_case = GetParam();
    const bool canonical = numerics == Numerics::kCanonical;
    const auto* row = built_in_rules()->find(op_case.op);
    if (!canonical && row && !error_bound(*row)) return;  // left out, and counted
    const auto id = fmt::format("{}/{}{}", op_case.op, canonical ? "canonical" : "native", spoils ? " spoiled" : "");
    const auto failure = failure_of_counted(
        id, op_case.op, cases,
        [&] {
          const bool gradients = op_case.is(OpCase::kGradient) && *rc::gen::arbitrary<bool>();
          const auto reach = *rc::gen::element(Reach::kShort, Reach::kLong);
          const auto trial = draw_canonical(op_case, reach, gradients);
          const auto checked = check(trial, numerics, spoils);
          if (checked.is_refused) return;
          if (checked.compared > 0 && (!spoils || checked.is_spoiled)) ++compared_cases()[op_case.op];
          if (!spoils && checked.blame)
            RC_FAIL(describe(trial) + (canonical ? ", canonical:\n" : ", native:\n") + checked.blame->text());
          // Its weights have no bound where 16-bit scores are so large that their rounding is a large exponent.
          if (!canonical && op_case.op == "mesh::attention_backward") return;
          // Nothing is said of products that are too large on their way.
          if (!canonical && (op_case.op.starts_with("prod") || op_case.op == "cumprod")) return;
          if (checked.is_spoiled && !checked.blame) RC_FAIL(describe(trial) + ": a wrong shard was not seen");
        },
        canonical && refused_by_canonical(op_case.op));
    if (!failure.empty()) FAIL() << failure;
  }
};

TEST_P(OpCheckRows, AgreeUnderCanonicalNumerics) { expect(false, Numerics::kCanonical, case_count(20)); }
TEST_P(OpCheckRows, AreWithinTheirBoundsUnderNativeNumerics) { expect(false, Numerics::kNative, case_count(30)); }

class OpCheckSpoiledRows : public OpCheckRows {};

TEST_P(OpCheckSpoiledRows, AWrongShardIsSeenUnderCanonicalNumerics) {
  expect(true, Numerics::kCanonical, case_count(8));
}
TEST_P(OpCheckSpoiledRows, AWrongShardIsSeenUnderNativeNumerics) { expect(true, Numerics::kNative, case_count(20)); }

std::vector<OpCase> spoiled_cases() {
  auto all = valued_cases();
  std::erase_if(all, [](const OpCase& op_case) {
    const auto* row = built_in_rules()->find(op_case.op);
    const bool shares_bytes = op_case.op == "_conj" || (row && (row->traits & Rule::kRearranges) != 0);
    return shares_bytes;
  });
  return all;
}

INSTANTIATE_TEST_SUITE_P(Rows, OpCheckRows, ::testing::ValuesIn(valued_cases()), test_name);
INSTANTIATE_TEST_SUITE_P(Rows, OpCheckSpoiledRows, ::testing::ValuesIn(spoiled_cases()), test_name);

/// A row of a program's own has no bound under native numerics: it is left out, and counted.
TEST(OpCheck, LeavesOutWhatHasNoBound) {
  register_backend();
  World::Options options;
  options.rank_count = 2;
  options.rules = built_in_rules()->with(Rule{"deg2rad", "pointwise", "...->...", "-"});
  World world(options);
  OpCheck op_check(world, 1);
  {
    const ObserverScope watched(world.observers(), op_check);
    at::deg2rad(distribute(exact_tensor({4, 3}), Layout::parse(world.mesh("tp=2"), "[tp=S(0)]"))).neg();
  }
  EXPECT_EQ(op_check.counts().text(), "1 of 2 ops (1 have no bound) and 0 of 0 moves");
  EXPECT_FALSE(op_check.blame());
}

/// A new row needs a bound, or to be called exact.
TEST(ErrorBounds, AreKnownOfEveryRow) {
  for (const auto& [op, rule] : built_in_rules()->rows())
    EXPECT_TRUE(error_bound(rule) || is_left_out(rule)) << op << " has no entry in consistency/bounds/";
}

}  // namespace
}  // namespace lockstep::testing
