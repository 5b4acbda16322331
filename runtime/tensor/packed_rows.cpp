#include "runtime/tensor/packed_rows.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include <algorithm>

#include "core/error.h"
#include "runtime/plain/plain_tensors.h"
#include "runtime/tensor/ranks.h"
#include "runtime/tensor/sharded_tensor.h"

namespace lockstep {
namespace {

at::Tensor part_of(const at::Tensor& cells, int64_t dim, int64_t first, const Range& wanted) {
  const auto overlap = Range{first, cells.size(dim)}.overlap(wanted);
  return cells.narrow(dim, overlap.length ? overlap.start - first : 0, overlap.length);
}

}  // namespace

at::Tensor rows_of_cells(const at::Tensor& present, int64_t dim, int64_t first, const Range& wanted) {
  const auto numbers = present.flatten().cumsum(0, c10::kLong).sub(1).view(present.sizes());
  return part_of(numbers, dim, first, wanted).masked_select(part_of(present, dim, first, wanted));
}

int64_t count_of_rows(const at::Tensor& present, int64_t dim, int64_t first, const Range& wanted) {
  return part_of(present, dim, first, wanted).sum().item<int64_t>();
}

at::Tensor unpacked(const at::Tensor& rows, const at::Tensor& present, bool nodes) {
  const int64_t front = nodes ? 1 : 0;
  std::vector<int64_t> sizes(rows.sizes().begin(), rows.sizes().begin() + front);
  sizes.push_back(present.numel());
  sizes.insert(sizes.end(), rows.sizes().begin() + front + 1, rows.sizes().end());
  auto whole = at::zeros(sizes, rows.options());
  whole.index_copy_(front, present.flatten().nonzero().squeeze(1), rows);
  sizes.erase(sizes.begin() + front);
  sizes.insert(sizes.begin() + front, present.sizes().begin(), present.sizes().end());
  return whole.view(sizes);
}

at::Tensor packed(const at::Tensor& whole, const at::Tensor& present, bool nodes) {
  const int64_t front = nodes ? 1 : 0;
  return whole.flatten(front, front + present.dim() - 1).index_select(front, present.flatten().nonzero().squeeze(1));
}

bool same_cells(const Shards& left, const Shards& right) {
  return std::equal(left.begin(), left.end(), right.begin(), right.end(),
                    [](const at::Tensor& mine, const at::Tensor& other) { return mine.equal(other); });
}

std::vector<int64_t> sizes_of_rows(const TensorSpec& spec, size_t index, const at::Tensor& present) {
  auto sizes = spec.local_sizes[index];
  *std::find(sizes.begin(), sizes.end(), TensorSpec::kAnyRows) = present.sum().item<int64_t>();
  return sizes;
}

const TensorSpec* spec_of_cells(const TensorSpec& spec) {
  auto placements = spec.layout.placements();
  for (auto& placement : placements) {
    if (!placement.is_shard() || placement.dim >= spec.packing.cells) placement = Placement::replicate();
    placement.of_cells = false;
  }
  const std::vector<int64_t> sizes(spec.sizes.begin(), spec.sizes.begin() + spec.packing.cells);
  const auto& mesh = spec.layout.mesh();
  return mesh.specs().intern(Layout(mesh, std::move(placements)), sizes, c10::kBool);
}

at::Tensor distribute_rows(const at::Tensor& whole, const at::Tensor& present, const Layout& layout) {
  return distribute_rows(whole, present, layout, whole.scalar_type());
}

at::Tensor distribute_rows(const at::Tensor& whole, const at::Tensor& present, const Layout& layout,
                           c10::ScalarType dtype) {
  const PlainTensors guard;
  if (layout.any_partial())
    fail<BadInput>("distribute_rows: {} has a Partial axis; redistribute() to it", layout.text());
  const Packing packing{static_cast<int>(present.dim()), present.sum().item<int64_t>()};
  const auto& mesh = layout.mesh();
  const auto* spec = mesh.specs().intern(layout, whole.sizes(), dtype, packing);
  const auto* cells = spec_of_cells(*spec);
  Shards shards, held;
  for (size_t i = 0; i < mesh.local_count(); ++i) {
    held.push_back(cut_out(*cells, present, i).contiguous().to(mesh.all().device()));
    const auto dense = cut_out(*spec, whole.detach(), i).to(storage(*spec)).to(mesh.all().device());
    shards.push_back(packed(dense, held.back()));
  }
  auto set = std::make_shared<ShardSet>(std::move(shards), false);
  set->set_present(std::make_shared<const Shards>(std::move(held)));
  return make_sharded(spec, std::move(set));
}

}  // namespace lockstep
