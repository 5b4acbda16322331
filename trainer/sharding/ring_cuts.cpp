#include "trainer/sharding/ring_cuts.h"

#include <optional>

#include "core/error.h"
#include "runtime/context/world.h"
#include "runtime/own_ops/mesh_ops.h"
#include "trainer/job/mesh_degrees.h"

namespace lockstep::trainer {
namespace {

/// The first position at which a sequence may not be cut; none: it is cut well.
std::optional<int64_t> wrong_cut(const ShardingPlan& plan, int64_t length) {
  const auto layout = plan.activation({1, length, 1}, "batch length embed");
  const int axis = plan.mesh().find_axis(axis::kContext);
  for (int64_t part = 1; part < plan.mesh().axis_size(axis); ++part) {
    const auto cut = layout.cut(plan.mesh().member(plan.mesh().ranks()[0], axis, part), 1, length);
    if (cut.length > 0 && cut.start % mesh_ops::kAttentionBlock != 0) return cut.start;
  }
  return std::nullopt;
}

/// The next longer one that is cut well; 0: there is none near.
int64_t fitting_length(const ShardingPlan& plan, int64_t length) {
  constexpr int64_t kBlock = mesh_ops::kAttentionBlock;
  for (int64_t other = (length / kBlock + 1) * kBlock; other <= 64 * length + 64 * kBlock; other += kBlock)
    if (!wrong_cut(plan, other)) return other;
  return 0;
}

}  // namespace

void require_ring_fits(const ShardingPlan& plan, const std::string& key, int64_t length) {
  if (!plan.mesh().world().canonical() || plan.mesh().find_axis(axis::kContext) < 0) return;
  const auto cut = wrong_cut(plan, length);
  if (!cut) return;
  const int64_t other = fitting_length(plan, length);
  fail<BadInput>(
      "{} {}: sequences are cut at {}, and canonical numerics takes the keys of a ring in blocks of {}. {}Choose "
      "another context_parallel_degree, or parallelism.context_parallel_rotate_method allgather or ulysses.",
      key, length, *cut, mesh_ops::kAttentionBlock, other > 0 ? fmt::format("{} {} would do. ", key, other) : "");
}

}  // namespace lockstep::trainer
