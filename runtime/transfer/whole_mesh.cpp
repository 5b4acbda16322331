#include "runtime/transfer/whole_mesh.h"

#include <ATen/Functions.h>

#include "core/error.h"
#include "runtime/context/world.h"
#include "runtime/plain/plain_tensors.h"
#include "runtime/redistribution/gather.h"
#include "runtime/redistribution/redistribute.h"
#include "runtime/tensor/sharded_tensor.h"

namespace lockstep {
namespace {

c10::ScalarType integer_as_wide(c10::ScalarType dtype) {
  switch (c10::elementSize(dtype)) {
    case 1:
      return c10::kByte;
    case 2:
      return c10::kShort;
    case 4:
      return c10::kInt;
    default:
      LOCKSTEP_CHECK_EQ(c10::elementSize(dtype), 8u);
      return c10::kLong;
  }
}

/// As integers: sums of one value and zeros keep all of its bits.
at::Tensor bits_of(const at::Tensor& shard) {
  return shard.contiguous().view(integer_as_wide(shard.scalar_type())).to(c10::kLong);
}

at::Tensor of_bits(const at::Tensor& bits, c10::ScalarType dtype) {
  return bits.to(integer_as_wide(dtype)).contiguous().view(dtype);
}

/// Unfinished over the axes that the submesh fixes: its ranks have the value, the others zero.
at::Tensor spread(const at::Tensor& tensor) {
  const auto& spec = spec_of(tensor);
  const auto &part = spec.layout.mesh(), &whole = part.whole();
  LOCKSTEP_CHECK(spec.all_replicate, "{} is not replicated", spec.text());
  Placements placements(static_cast<size_t>(whole.axis_count()), Placement::replicate());
  for (size_t axis = 0; axis < placements.size(); ++axis)
    if (part.fixed()[axis] >= 0) placements[axis] = Placement::partial();
  const auto options = at::dtype(c10::kLong).device(whole.all().device());
  Shards shards;
  for (const int rank : whole.local_ranks()) {
    const int index = part.local_index(rank);
    shards.push_back(index < 0 ? at::zeros(spec.sizes, options)
                               : bits_of(sharded(tensor).shards()->whole()[static_cast<size_t>(index)]));
  }
  return from_shards(std::move(shards), Layout(whole, std::move(placements)), spec.sizes, c10::kLong);
}

at::Tensor with_its_dtype(const at::Tensor& bits, const TensorSpec& spec) {
  const auto& whole = spec.layout.mesh().whole();
  Shards shards;
  for (const auto& shard : sharded(bits).shards()->whole()) shards.push_back(of_bits(shard, storage(spec)));
  return make_sharded(whole.specs().intern(Layout::replicated(whole), spec.sizes, spec.dtype), std::move(shards));
}

}  // namespace

std::vector<at::Tensor> on_whole_mesh(const std::vector<at::Tensor>& tensors) {
  const PlainTensors guard;
  std::vector<size_t> moved;
  std::vector<at::Tensor> sums, results = tensors;
  for (size_t t = 0; t < tensors.size(); ++t) {
    const auto& mesh = layout_of(tensors[t]).mesh();
    if (&mesh == &mesh.whole()) continue;
    moved.push_back(t);
    sums.push_back(spread(tensors[t]));
  }
  if (moved.empty()) return results;
  const auto& whole = layout_of(sums[0]).mesh();
  const auto all = redistribute_bucket(sums, std::vector(sums.size(), Layout::replicated(whole)));
  for (size_t i = 0; i < moved.size(); ++i) results[moved[i]] = with_its_dtype(all[i], spec_of(tensors[moved[i]]));
  return results;
}

at::Tensor gather_everywhere(const at::Tensor& tensor) {
  const auto& mesh = layout_of(tensor).mesh();
  const auto& whole = mesh.whole();
  if (&mesh == &whole || static_cast<int>(whole.local_count()) == whole.rank_count()) return gather(tensor);
  auto& traffic = mesh.world().traffic();
  const Traffic before = traffic;
  const auto all = on_whole_mesh({redistribute_values(tensor, Layout::replicated(mesh), "gather")});
  traffic = before;
  return gather(all[0]);
}

}  // namespace lockstep
