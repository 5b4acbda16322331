#include "runtime/tensor/mesh.h"

#include <algorithm>
#include <numeric>

#include "core/error.h"
#include "runtime/tensor/ranks.h"
#include "runtime/tensor/spec.h"

namespace lockstep {
namespace {

/// Checks the axes and gives the distance between the ranks of neighbours on each.
std::vector<int> strides_of(const std::vector<MeshAxis>& axes) {
  std::vector<int> strides(axes.size());
  int64_t stride = 1;
  for (size_t axis = axes.size(); axis-- > 0;) {
    const auto& [name, size] = axes[axis];
    if (name.empty()) fail<BadInput>("a mesh axis has no name (mesh {})", to_text(axes));
    if (size < 1) fail<BadInput>("mesh axis {}={} should have a size of at least 1", name, size);
    const auto same = [&, &name = name](const MeshAxis& other) { return other.name == name; };
    if (std::count_if(axes.begin(), axes.end(), same) > 1) fail<BadInput>("mesh axis {} is named twice", name);
    strides[axis] = static_cast<int>(stride);
    stride *= size;
  }
  return strides;
}

}  // namespace

Mesh::Mesh(Ranks& ranks, std::vector<MeshAxis> axes)
    : all_(&ranks), axes_(std::move(axes)), fixed_(axes_.size(), -1), specs_(std::make_unique<SpecTable>(*this)) {
  const auto count = lockstep::rank_count(axes_);
  strides_ = strides_of(axes_);
  if (count != ranks.count()) fail<BadInput>("mesh {} needs {} ranks, there are {}", text(), count, ranks.count());
  ranks_.resize(static_cast<size_t>(count));
  std::iota(ranks_.begin(), ranks_.end(), 0);
  find_local_ranks();
}

Mesh::Mesh(const Mesh& whole, std::vector<int64_t> fixed)
    : all_(whole.all_), whole_(&whole), fixed_(std::move(fixed)), specs_(std::make_unique<SpecTable>(*this)) {
  LOCKSTEP_CHECK_EQ(fixed_.size(), whole.axes_.size());
  for (size_t axis = 0; axis < fixed_.size(); ++axis) {
    if (fixed_[axis] >= 0) continue;
    axes_.push_back(whole.axes_[axis]);
    strides_.push_back(whole.strides_[axis]);
  }
  for (const int rank : whole.ranks_)
    if (whole.agrees(rank, fixed_)) ranks_.push_back(rank);
  find_local_ranks();
}

Mesh::Mesh(const Mesh& whole, const TransferEnd& end)
    : all_(whole.all_), whole_(&whole), fixed_(end.fixed), end_(end), specs_(std::make_unique<SpecTable>(*this)) {
  LOCKSTEP_CHECK(!whole.whole_ && end.from != end.to && end.axis >= 0 && end.axis < whole.axis_count());
  LOCKSTEP_CHECK_EQ(fixed_.size(), whole.axes_.size());
  for (size_t axis = 0; axis < fixed_.size(); ++axis) {
    if (fixed_[axis] >= 0) continue;
    const bool is_way = static_cast<int>(axis) == end.axis;
    if (is_way) end_axis_ = static_cast<int>(axes_.size());
    axes_.push_back({whole.axes_[axis].name, is_way ? 2 : whole.axes_[axis].size});
    strides_.push_back(whole.strides_[axis] * (is_way ? static_cast<int>(end.to - end.from) : 1));
  }
  for (const int rank : whole.ranks_)
    if (whole.agrees(rank, fixed_) && whole.coordinate(rank, end.axis) == (end.receives ? end.to : end.from))
      ranks_.push_back(rank);
  find_local_ranks();
}

Mesh::~Mesh() = default;

World& Mesh::world() const { return all_->world(); }

bool Mesh::agrees(int rank, const std::vector<int64_t>& fixed) const {
  for (size_t axis = 0; axis < fixed.size(); ++axis)
    if (fixed[axis] >= 0 && coordinate(rank, static_cast<int>(axis)) != fixed[axis]) return false;
  return true;
}

void Mesh::find_local_ranks() {
  local_index_.assign(static_cast<size_t>(all_->count()), -1);
  for (const int rank : all_->local()) {
    if (!std::binary_search(ranks_.begin(), ranks_.end(), rank)) continue;
    local_index_[static_cast<size_t>(rank)] = static_cast<int>(local_ranks_.size());
    local_ranks_.push_back(rank);
  }
}

const Mesh& Mesh::submesh(std::string_view axis, int64_t coordinate) const {
  LOCKSTEP_CHECK(!is_transfer_end(), "{} has no parts", text());
  const int own = find_axis(axis);
  if (own < 0) fail<BadInput>("mesh {} has no axis {}", text(), axis);
  if (coordinate < 0 || coordinate >= axis_size(own))
    fail<BadInput>("mesh {} has no coordinate {}={}; there are 0 to {}", text(), axis, coordinate, axis_size(own) - 1);
  auto fixed = fixed_;
  fixed[static_cast<size_t>(whole().find_axis(axis))] = coordinate;
  return all_->submesh(whole(), fixed);
}

const Mesh& Mesh::submesh(const std::vector<std::string>& axes, int rank) const {
  for (const auto& axis : axes)
    if (find_axis(axis) < 0) fail<BadInput>("mesh {} has no axis {}", text(), axis);
  if (!std::binary_search(ranks_.begin(), ranks_.end(), rank)) fail<BadInput>("mesh {} has no rank {}", text(), rank);
  const Mesh* mesh = this;
  for (const auto& [name, size] : axes_)
    if (std::find(axes.begin(), axes.end(), name) == axes.end())
      mesh = &mesh->submesh(name, coordinate(rank, find_axis(name)));
  return *mesh;
}

int Mesh::find_axis(std::string_view name) const {
  for (size_t axis = 0; axis < axes_.size(); ++axis)
    if (axes_[axis].name == name) return static_cast<int>(axis);
  return -1;
}

int64_t Mesh::coordinate(int rank, int axis) const {
  if (axis == end_axis_) [[unlikely]]
    return whole_->coordinate(rank, end_.axis) == end_.to ? 1 : 0;
  return rank / strides_[static_cast<size_t>(axis)] % axis_size(axis);
}

int Mesh::member(int rank, int axis, int64_t coordinate) const {
  return rank + static_cast<int>(coordinate - this->coordinate(rank, axis)) * strides_[static_cast<size_t>(axis)];
}

RankGroup Mesh::group(int rank, int axis) const {
  RankGroup group;
  for (int64_t i = 0; i < axis_size(axis); ++i) group.push_back(member(rank, axis, i));
  return group;
}

std::string Mesh::text() const {
  if (!whole_) return to_text(axes_);
  std::vector<MeshAxis> at;
  for (size_t axis = 0; axis < fixed_.size(); ++axis)
    if (fixed_[axis] >= 0) at.push_back({whole_->axes_[axis].name, fixed_[axis]});
  if (!is_transfer_end()) return whole_->text() + " at " + to_text(at);
  const auto& name = whole_->axes_[static_cast<size_t>(end_.axis)].name;
  at.push_back({name, end_.receives ? end_.to : end_.from});
  return fmt::format("{} at {} {} {}={}", whole_->text(), to_text(at), end_.receives ? "from" : "to", name,
                     end_.receives ? end_.from : end_.to);
}

}  // namespace lockstep
