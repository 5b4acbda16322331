// Attention broken on purpose: its arithmetic, its mask, the plan of its gradients, its order of keys. The property
// that holds for the kernels fails for each fault.
#include <gtest/gtest.h>

#include "tests/support/cases/attention_cases.h"
#include "tests/support/mutants.h"

#define LOCKSTEP_TILE_TARGET LOCKSTEP_TARGET_BASELINE
#include "runtime/kernels/attention/attention_backward.h"
#include "runtime/kernels/attention/attention_forward.h"

namespace lockstep::testing {
namespace {

using kernels::Baseline;
using kernels::ProductPlan;
using Vector = Baseline<float>::Vector;
using Forward = kernels::AttentionForward<float, float>;
using Backward = kernels::AttentionBackward<float, float>;

// Arithmetic.

struct SplitFma : Baseline<float> {
  static Vector fma(const Vector& a, const Vector& b, const Vector& c) { return add(multiply(a, b), c); }
};
struct NoInteger : Baseline<float> {  ///< the running maximum is not an integer
  static Vector rint(const Vector& a) { return a; }
};
struct RoundsDown : Baseline<float> {
  static Vector rint(const Vector& a) {
    return each([&](int i) { return std::floor(a.lane[i]); });
  }
};
struct NanIsLargest : Baseline<float> {
  static Vector maximum(const Vector& a, const Vector& b) {
    return each([&](int i) { return b.lane[i] > a.lane[i] ? b.lane[i] : a.lane[i]; });
  }
};
struct FromNegativeZero : Baseline<float> {
  static Vector zero() { return broadcast(-0.0f); }
};
struct LeftAlone : Baseline<float> {  ///< what waits is not joined, lanes do not add up
  static Vector add(const Vector& a, const Vector&) { return a; }
};
struct ScoresTruncated : Baseline<float> {
  static Vector fma(const Vector& a, const Vector& b, const Vector& c) {
    const auto sum = Baseline<float>::fma(a, b, c);
    return each([&](int i) { return portable::bits<float>(portable::bits<uint32_t>(sum.lane[i]) & ~1u); });
  }
};

template <class Set>
using Tiles = kernels::Tiling<Set, 4, 8>;

/// The production kernel of a set, heads one after the other, query rows in pieces of `rows`.
template <class Set>
void forward_in_pieces(const Forward& work, int64_t rows) {
  for (int64_t head = 0; head < work.shape.batch * work.shape.heads; ++head)
    for (int64_t first = 0; first < work.shape.rows; first += rows)
      kernels::ForwardKernel<Tiles<Set>, float>::run(
          {&work, head / work.shape.heads, head % work.shape.heads, first, std::min(rows, work.shape.rows - first)});
}
template <class Set>
void forward(const Forward& work) {
  forward_in_pieces<Set>(work, std::max<int64_t>(work.shape.rows, 1));
}
void in_pieces_of_seven(const Forward& work) { forward_in_pieces<Baseline<float>>(work, 7); }

using ChangePlan = void (*)(ProductPlan&);
void unchanged(ProductPlan&) {}

template <class Set, ChangePlan kChange = unchanged>
void backward(const Backward& work) {
  auto plan =
      kernels::plan_product(kernels::Contraction::over(work.all_rows, work.first, work.shape.rows), /*group_limit=*/0);
  kChange(plan);
  for (int64_t head = 0; head < work.shape.batch * work.shape.heads; ++head)
    kernels::BackwardKernel<Tiles<Set>, float>::run({&work, &plan, head / work.shape.heads, head % work.shape.heads});
}

// Plans: every leaf of query rows is a group.

void joined_at_once(ProductPlan& plan) {
  int64_t node = -1;
  for (auto& group : plan.groups) {
    group.joins = group.node == node ? 1 : 0;
    group.depth = group.joins;
    node = group.node;
  }
}
void boundary_one_late(ProductPlan& plan) {
  for (size_t g = 0; g + 1 < plan.groups.size(); g += 2)
    if (plan.groups[g + 1].length > 1) {
      ++plan.groups[g].length;
      ++plan.groups[g + 1].position;
      --plan.groups[g + 1].length;
    }
}
void last_row_missing(ProductPlan& plan) {
  if (!plan.groups.empty() && plan.groups.back().length > 0) --plan.groups.back().length;
}
void one_leaf(ProductPlan& plan) {
  if (plan.node_count != 1 || plan.groups.size() < 2) return;
  auto all = plan.groups.front();
  all.length = plan.positions;
  all.ends_node = true;
  plan.groups = {all};
}

// Masks and orders.

void next_key_seen(const Forward& work) {
  auto changed = work;
  ++changed.shape.first_row;
  kernels::attention_forward<float, float>(changed);
}
void everything_seen(const Forward& work) {
  auto changed = work;
  changed.shape.causal = false;
  kernels::attention_forward<float, float>(changed);
}
/// The rows of the second half take the mask of the first half: as if a shard began at row 0.
void mask_of_the_shard(const Forward& work) {
  const int64_t half = work.shape.rows / 2;
  for (const bool second : {false, true}) {
    auto part = work;
    part.shape.rows = second ? work.shape.rows - half : half;
    const int64_t skipped = second ? half : 0;
    part.query.data += skipped * work.query.row_stride;
    part.output.data += skipped * work.output.row_stride;
    part.log_sum.data += skipped * work.log_sum.row_stride;
    kernels::attention_forward<float, float>(part);
  }
}
void keys_from_the_last(const Forward& work) {
  auto turned = work;
  if (work.shape.causal || work.shape.keys == 0) return kernels::attention_forward<float, float>(work);
  for (auto* tensor : {&turned.key, &turned.value}) {
    tensor->data += (work.shape.keys - 1) * tensor->row_stride;
    tensor->row_stride *= -1;
  }
  kernels::attention_forward<float, float>(turned);
}
void next_scale(const Forward& work) {
  auto changed = work;
  changed.shape.scale = std::nextafter(static_cast<float>(changed.shape.scale), 1.0f);
  kernels::attention_forward<float, float>(changed);
}
/// Query head h reads key head h mod heads.
void wrong_group(const Forward& work) {
  for (int64_t head = 0; head < work.shape.heads * work.shape.group; ++head) {
    auto one = work;
    one.shape.heads = one.shape.group = 1;
    const int64_t key = head % work.shape.heads;
    one.query.data += head * work.query.head_stride;
    one.output.data += head * work.output.head_stride;
    one.log_sum.data += head * work.log_sum.head_stride;
    one.key.data += key * work.key.head_stride;
    one.value.data += key * work.value.head_stride;
    kernels::attention_forward<float, float>(one);
  }
}

void next_key_seen_backward(const Backward& work) {
  auto changed = work;
  ++changed.shape.first_row;
  kernels::attention_backward<float, float>(changed);
}
/// The tree of the rows that are here alone: one node, and zeros for the others.
void one_node_per_rank(const Backward& work) {
  auto changed = work;
  const bool any = !nodes_of(kernels::Contraction::over(work.all_rows, work.first, work.shape.rows)).empty();
  if (any) changed.first = 0, changed.all_rows = work.shape.rows;
  kernels::attention_backward<float, float>(changed);
}
/// The heads of a group are summed from the last to the first.
void group_from_the_last(const Backward& work) {
  auto changed = work;
  const int64_t last = work.shape.group - 1;
  if (work.shape.heads == 1) {
    for (auto* tensor : {&changed.gradient, &changed.query, &changed.output})
      tensor->data += last * tensor->head_stride, tensor->head_stride *= -1;
    changed.log_sum.data += last * work.log_sum.head_stride, changed.log_sum.head_stride *= -1;
    changed.query_gradient.data += last * work.query_gradient.head_stride, changed.query_gradient.head_stride *= -1;
  }
  kernels::attention_backward<float, float>(changed);
}

using RunForward = void (*)(const Forward&);
using RunBackward = void (*)(const Backward&);
constexpr RunForward kForward = forward<Baseline<float>>;
constexpr RunBackward kBackward = backward<Baseline<float>>;

struct AttentionMutant {
  const char* fault;
  RunForward forward = kForward;
  RunBackward backward = kBackward;
};

constexpr AttentionMutant kMutants[] = {
    {"fma split", forward<SplitFma>},
    {"a maximum that is no integer", forward<NoInteger>},
    {"the maximum rounded down", forward<RoundsDown>},
    {"NaN as the maximum", forward<NanIsLargest>},
    {"lanes that do not add up", forward<LeftAlone>},
    {"scores truncated", forward<ScoresTruncated>},
    {"one key too many", next_key_seen},
    {"no mask", everything_seen},
    {"the mask of the shard", mask_of_the_shard},
    {"keys from the last", keys_from_the_last},
    {"another scale", next_scale},
    {"another group's keys", wrong_group},
    {"fma split backward", kForward, backward<SplitFma>},
    {"a chain from -0 backward", kForward, backward<FromNegativeZero>},
    {"leaves not joined backward", kForward, backward<LeftAlone>},
    {"leaves of rows joined at once", kForward, backward<Baseline<float>, joined_at_once>},
    {"a leaf of rows one late", kForward, backward<Baseline<float>, boundary_one_late>},
    {"the last row missing", kForward, backward<Baseline<float>, last_row_missing>},
    {"one leaf of all rows", kForward, backward<Baseline<float>, one_leaf>},
    {"one key too many backward", kForward, next_key_seen_backward},
    {"one node per rank", kForward, one_node_per_rank},
    {"a group's heads from the last", kForward, group_from_the_last},
};

TEST(AttentionMutants, TheUnbrokenPartsPass) {
  for (const auto forward : {kForward, RunForward(in_pieces_of_seven)})
    EXPECT_EQ(failure_of("attention's parts", 50, [&] { attention_equals_oracle<float, float>(forward, kBackward); }),
              "");
}

TEST(AttentionMutants, AreNoticed) {
  for (const auto& mutant : kMutants)
    expect_noticed(mutant.fault, [&] { attention_equals_oracle<float, float>(mutant.forward, mutant.backward); });
}

}  // namespace
}  // namespace lockstep::testing
