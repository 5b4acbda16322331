#include "consistency/held_shards.h"

#include <ATen/Functions.h>

#include <cstring>
#include <map>

#include "core/error.h"
#include "runtime/context/world.h"
#include "runtime/exchange/exchange.h"
#include "runtime/kernels/tensors/join_nodes.h"
#include "runtime/plain/plain_tensors.h"
#include "runtime/redistribution/move_rows.h"
#include "runtime/tensor/reduce.h"
#include "runtime/tensor/sharded_tensor.h"

namespace lockstep {
namespace {

std::vector<int64_t> shard_sizes(const TensorSpec& spec, int rank) {
  std::vector<int64_t> sizes;
  if (spec.layout.ordered_sum()) sizes.push_back(node_count(spec.layout, rank));
  for (int dim = 0; dim < spec.dim_count(); ++dim)
    sizes.push_back(spec.layout.cut(rank, dim, spec.sizes[static_cast<size_t>(dim)]).length);
  return sizes;
}

/// What each local rank knows of others: theirs, in the order of the coordinates on the axes so far.
struct Known {
  std::vector<int> ranks;
  Shards shards;
};

at::Tensor as_bytes(const at::Tensor& shard) { return shard.contiguous().view({-1}).view(c10::kByte); }

/// Everyone tells the members of its group what it knows, as bytes: what is done to numbers on their way is not done to
/// these.
std::vector<Known> told_along(const TensorSpec& spec, int axis, const std::vector<Known>& known) {
  const auto& mesh = spec.layout.mesh();
  const auto& local = mesh.local_ranks();
  const auto rank_of = [&](size_t t, size_t i, size_t m) {
    return mesh.member(known[i].ranks[t], axis, static_cast<int64_t>(m));
  };
  const auto members = static_cast<size_t>(mesh.axis_size(axis));
  Exchange request{mesh, axis, CollectiveKind::kAllGather, c10::kByte, {spec.digest}, {}, {}};
  for (size_t t = 0; t < known[0].shards.size(); ++t) {
    auto& pieces = request.sent.emplace_back(local.size());
    for (size_t i = 0; i < local.size(); ++i) pieces[i].assign(members, as_bytes(known[i].shards[t]));
  }
  request.received_sizes = [&](size_t t, size_t i, size_t m) {
    const auto elements = c10::multiply_integers(shard_sizes(spec, rank_of(t, i, m)));
    return std::vector<int64_t>{elements * static_cast<int64_t>(c10::elementSize(storage(spec)))};
  };
  std::vector<Known> result(local.size());
  exchange(std::move(request), [&](const std::vector<Pieces>& received) {
    for (size_t i = 0; i < local.size(); ++i)
      for (size_t t = 0; t < received.size(); ++t)
        for (size_t m = 0; m < members; ++m) {
          result[i].ranks.push_back(rank_of(t, i, m));
          const auto bytes = received[t][i][m].cpu().clone();
          result[i].shards.push_back(bytes.view(storage(spec)).view(shard_sizes(spec, rank_of(t, i, m))));
        }
  });
  return result;
}

/// Coordinates on the axes for which `counts` holds.
template <class Counts>
std::vector<int64_t> coordinates(const Layout& layout, int rank, const Counts& counts) {
  std::vector<int64_t> result;
  for (int axis = 0; axis < layout.axis_count(); ++axis)
    if (counts(layout[axis])) result.push_back(layout.mesh().coordinate(rank, axis));
  return result;
}

at::Tensor joined_sum(const TensorSpec& spec, const std::vector<int>& ranks, const Shards& parts) {
  const auto& placement = *spec.layout.ordered_sum();
  at::Tensor sum;
  for (int64_t term = 0; term < placement.terms; ++term) {
    std::vector<OrderedNode> nodes;
    for (size_t r = 0; r < ranks.size(); ++r) {
      const auto held = sum_nodes(spec.layout, ranks[r]);
      for (size_t n = 0; n < held.size(); ++n)
        nodes.push_back(
            {held[n], parts[r].select(0, term * static_cast<int64_t>(held.size()) + static_cast<int64_t>(n))});
    }
    const auto sizes = parts[0].sizes().slice(1);
    const auto value =
        join_nodes(sum_tree(placement), nodes, parts[0].options(), sizes, {placement.rounded_levels, spec.dtype})
            .squeeze(0);
    sum = sum.defined() ? at::add(sum, value) : value;
  }
  return sum;
}

/// What the ranks that share a sum have of it, along its axes from the last to the first.
at::Tensor combined(const TensorSpec& spec, const std::vector<int>& ranks, Shards parts) {
  if (spec.layout.ordered_sum()) return joined_sum(spec, ranks, parts);
  for (int axis = spec.layout.axis_count(); axis-- > 0;) {
    if (!spec.layout[axis].is_partial()) continue;
    const auto members = static_cast<size_t>(spec.layout.mesh().axis_size(axis));
    Shards next;
    for (size_t first = 0; first < parts.size(); first += members)
      next.push_back(reduce({parts.data() + first, members}, spec.layout[axis].reduction));
    parts = std::move(next);
  }
  return parts[0];
}

/// The ranks that hold parts of one sum, by where they stand on the other axes.
std::map<std::vector<int64_t>, std::vector<size_t>> groups_of_parts(const HeldShards& all) {
  std::map<std::vector<int64_t>, std::vector<size_t>> groups;
  const auto is_other = [](const Placement& placement) { return !placement.is_partial(); };
  for (size_t r = 0; r < all.ranks.size(); ++r)
    groups[coordinates(all.spec->layout, all.ranks[r], is_other)].push_back(r);
  return groups;
}

}  // namespace

HeldShards local_shards(const TensorSpec& spec, const Shards& shards) {
  HeldShards held{&spec, spec.layout.mesh().local_ranks(), {}};
  for (const auto& shard : shards) held.shards.push_back(shard.detach().cpu());
  return held;
}

HeldShards local_shards(const at::Tensor& tensor) {
  const PlainTensors guard;
  auto& self = sharded(tensor);
  self.bring_up_to_date();
  return local_shards(self.spec(), *self.shards());
}

HeldShards local_shards(const TensorSpec& spec, ShardSet& set) {
  const PlainTensors guard;
  if (!spec.is_packed()) return local_shards(spec, set.local_tensors());
  return local_shards(spec, all_rows(spec, set.local_tensors(), set.present()));
}

HeldShards all_shards(const HeldShards& local) {
  const PlainTensors guard;
  const auto& mesh = local.spec->layout.mesh();
  if (local.ranks.size() == mesh.ranks().size() || local.ranks.empty()) return local;
  std::vector<Known> known;
  for (size_t i = 0; i < local.ranks.size(); ++i) known.push_back({{local.ranks[i]}, {local.shards[i]}});
  for (int axis = 0; axis < mesh.axis_count(); ++axis)
    if (mesh.axis_size(axis) > 1) known = told_along(*local.spec, axis, known);
  return {.spec = local.spec, .ranks = std::move(known[0].ranks), .shards = std::move(known[0].shards)};
}

std::vector<int> sharers(const TensorSpec& spec, int rank) {
  const auto is_other = [](const Placement& placement) { return !placement.is_partial(); };
  const auto place = coordinates(spec.layout, rank, is_other);
  std::vector<int> ranks;
  for (const int each : spec.layout.mesh().ranks())
    if (coordinates(spec.layout, each, is_other) == place) ranks.push_back(each);
  return ranks;
}

at::Tensor part_of(const TensorSpec& spec, const at::Tensor& whole, int rank) {
  auto part = whole;
  for (int dim = 0; dim < spec.dim_count(); ++dim) {
    const auto range = spec.layout.cut(rank, dim, spec.sizes[static_cast<size_t>(dim)]);
    part = part.narrow(dim, range.start, range.length);
  }
  return part;
}

namespace {

HeldShards finished_as(const HeldShards& all, c10::ScalarType dtype) {
  HeldShards result{all.spec, {}, {}, true};
  for (const auto& [place, members] : groups_of_parts(all)) {
    std::vector<int> ranks;
    Shards parts;
    for (const size_t r : members) ranks.push_back(all.ranks[r]), parts.push_back(all.shards[r]);
    result.ranks.push_back(ranks[0]);
    result.shards.push_back(combined(*all.spec, ranks, std::move(parts)).to(dtype));
  }
  return result;
}

bool is_unfinished(const HeldShards& all) { return all.spec->any_partial && !all.is_finished; }

template <class Change>
HeldShards with_changed_floats(const HeldShards& all, const Change& change) {
  const PlainTensors guard;
  auto result = all;
  for (auto& shard : result.shards) {
    if (shard.is_floating_point()) shard = change(shard.to(c10::kDouble));
    if (shard.is_complex()) shard = change(shard.to(c10::kComplexDouble));
  }
  return is_unfinished(result) ? finished_as(result, result.shards.at(0).scalar_type()) : result;
}

}  // namespace

HeldShards finished(const HeldShards& all) {
  const PlainTensors guard;
  if (!is_unfinished(all)) return all;
  return finished_as(all, stored(all.spec->layout.mesh().world().domain(), all.spec->dtype));
}

HeldShards in_doubles(const HeldShards& all) {
  return with_changed_floats(all, [](const at::Tensor& doubles) { return doubles; });
}

HeldShards magnitudes(const HeldShards& all) {
  return with_changed_floats(all, [](const at::Tensor& doubles) { return doubles.abs(); });
}

at::Tensor whole_of(const HeldShards& all) {
  const PlainTensors guard;
  const auto& spec = *all.spec;
  const auto values = finished(all);
  const auto dtype =
      values.shards.empty() ? stored(spec.layout.mesh().world().domain(), spec.dtype) : values.shards[0].scalar_type();
  auto whole = at::empty(spec.sizes, dtype);
  // From the last rank to the first, so that of equal cuts the first one's stays.
  for (size_t r = values.ranks.size(); r-- > 0;) part_of(spec, whole, values.ranks[r]).copy_(values.shards[r]);
  return whole;
}

namespace {

/// Walks two strided tensors of equal sizes, and compares runs that lie together in both.
class Walk {
 public:
  Walk(const at::Tensor& left, const at::Tensor& right)
      : sizes_(left.sizes()), left_(left.strides()), right_(right.strides()), bytes_(left.element_size()) {
    // Dimensions that lie together in both are one run.
    while (runs_ > 0 && lie_together(runs_ - 1)) run_ *= sizes_[--runs_];
  }

  bool same(const char* left, const char* right, size_t dim = 0) const {
    if (dim == runs_) return std::memcmp(left, right, static_cast<size_t>(run_ * bytes_)) == 0;
    for (int64_t i = 0; i < sizes_[dim]; ++i)
      if (!same(left + i * left_[dim] * bytes_, right + i * right_[dim] * bytes_, dim + 1)) return false;
    return true;
  }

 private:
  bool lie_together(size_t dim) const { return left_[dim] == run_ && right_[dim] == run_; }

  c10::IntArrayRef sizes_, left_, right_;
  int64_t bytes_, run_ = 1;
  size_t runs_ = sizes_.size();  ///< dimensions outside of a run
};

}  // namespace

bool same_bits(const at::Tensor& left, const at::Tensor& right) {
  if (left.sizes() != right.sizes() || left.scalar_type() != right.scalar_type()) return false;
  if (left.numel() == 0) return true;
  return Walk(left, right)
      .same(static_cast<const char*>(left.const_data_ptr()), static_cast<const char*>(right.const_data_ptr()));
}

}  // namespace lockstep
