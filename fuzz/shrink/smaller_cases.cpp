#include "fuzz/shrink/smaller_cases.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include <algorithm>
#include <set>

namespace lockstep::fuzz {
namespace {

/// After an axis has gone: what cuts one dimension is counted from 0 again.
void renumber(Placements& placements) {
  for (auto& mine : placements) {
    if (mine.cuts() == Placement::kNothing) continue;
    uint8_t depth = 0;
    for (const auto& other : placements) depth += other.cuts() == mine.cuts() && other.depth < mine.depth;
    mine.depth = depth;
  }
}

class Smaller {
 public:
  explicit Smaller(const WholeCase& whole) : whole_(whole) {}

  std::vector<WholeCase> take() && {
    shrink_mesh();
    uncut();
    shrink_sizes();
    simplify();
    return std::move(all_);
  }

 private:
  template <class Change>
  void add(const Change& change) {
    auto other = whole_;
    change(other);
    all_.push_back(std::move(other));
  }

  void shrink_mesh() {
    for (size_t axis = 0; axis < whole_.axes.size(); ++axis) {
      if (whole_.axes.size() > 1) add([=](WholeCase& one) { drop_axis(one, axis); });
      const auto size = whole_.axes[axis].size;
      for (const int64_t smaller : {size / 2, size - 1})
        if (smaller > 1 && smaller < size) add([=](WholeCase& one) { one.axes[axis].size = smaller; });
    }
  }

  static void drop_axis(WholeCase& one, size_t axis) {
    const auto place = static_cast<ptrdiff_t>(axis);
    one.axes.erase(one.axes.begin() + place);
    const auto drop = [&](Placements& placements) {
      placements.erase(placements.begin() + place);
      renumber(placements);
    };
    for (auto& operand : one.operands) drop(operand.placements);
    if (one.target) drop(*one.target);
  }

  /// An axis that an operand is not cut on, units of one.
  void uncut() {
    for (size_t i = 0; i < whole_.operands.size(); ++i)
      for (size_t axis = 0; axis < whole_.axes.size(); ++axis) {
        const auto& placement = whole_.operands[i].placements[axis];
        if (!placement.is_replicate())
          add([=](WholeCase& one) {
            one.operands[i].placements[axis] = Placement::replicate();
            renumber(one.operands[i].placements);
          });
        if (placement.unit > 1) add([=](WholeCase& one) { one.operands[i].placements[axis].unit = 1; });
      }
  }

  /// All dimensions of one size together, as those of a product's factors are; then each alone. The front or the back.
  void shrink_sizes() {
    std::set<int64_t> sizes;
    for (const auto& operand : whole_.operands)
      for (const auto size : whole_.value(operand).sizes()) sizes.insert(size);
    for (const auto size : sizes)
      for (const int64_t smaller : std::set<int64_t>{1, size / 2, size - 1})
        for (const bool back : {false, true})
          if (smaller > 0 && smaller < size) add([=](WholeCase& one) { narrow_all(one, size, smaller, back); });
    for (size_t i = 0; i < whole_.operands.size(); ++i) {
      const auto value = whole_.value(whole_.operands[i]);
      for (int64_t dim = 0; dim < value.dim(); ++dim)
        for (const int64_t smaller : std::set<int64_t>{1, value.size(dim) / 2, value.size(dim) - 1})
          if (smaller > 0 && smaller < value.size(dim))
            add([=](WholeCase& one) { replace(one, i, value.narrow(dim, 0, smaller).clone()); });
    }
  }

  static void replace(WholeCase& one, size_t operand, const at::Tensor& value) {
    set_slot(one.arguments, one.operands[operand].slot, value);
  }

  /// Indices stay below the size that they may be of; sizes among the arguments follow.
  static void narrow_all(WholeCase& one, int64_t size, int64_t smaller, bool back) {
    for (size_t i = 0; i < one.operands.size(); ++i) {
      auto value = one.value(one.operands[i]);
      for (int64_t dim = 0; dim < value.dim(); ++dim)
        if (value.size(dim) == size) value = value.narrow(dim, back ? size - smaller : 0, smaller);
      if (value.scalar_type() == c10::kLong) value = at::where(value < size, value.clamp_max(smaller - 1), value);
      replace(one, i, value.clone());
    }
    for (auto& argument : one.arguments) {
      if (argument.isInt() && argument.toInt() == size) argument = smaller;
      if (!argument.isIntList()) continue;
      auto list = argument.toIntVector();
      std::replace(list.begin(), list.end(), size, smaller);
      argument = list;
    }
  }

  /// From the simplest on: nothing but zeros, ones, signs, integers.
  static at::Tensor simplified(const at::Tensor& value, int simplicity) {
    switch (simplicity) {
      case 4:
        return at::zeros_like(value);
      case 3:
        return at::ones_like(value);
      case 2:
        return at::sign(value);
      default:
        return value.is_floating_point() ? at::round(value) : value.clamp(-1, 1);
    }
  }

  void simplify() {
    for (size_t i = 0; i < whole_.operands.size(); ++i) {
      const auto value = whole_.value(whole_.operands[i]);
      if (value.numel() == 0 || value.is_complex() || value.scalar_type() == c10::kBool) continue;
      for (int simplicity = 4; simplicity > whole_.operands[i].simplicity; --simplicity)
        add([=](WholeCase& one) {
          replace(one, i, simplified(value, simplicity));
          one.operands[i].simplicity = simplicity;
        });
      clear_halves(i, value);
    }
  }

  /// Zeros in a half of it that has other values.
  void clear_halves(size_t operand, const at::Tensor& value) {
    const auto half = (value.numel() + 1) / 2;
    for (const int64_t begin : {int64_t{0}, value.numel() - half}) {
      auto other = value.clone(at::MemoryFormat::Contiguous);
      auto part = other.view({-1}).narrow(0, begin, half);
      if (half == value.numel() || !part.any().item<bool>()) continue;
      part.zero_();
      add([=](WholeCase& one) { replace(one, operand, other); });
    }
  }

  const WholeCase& whole_;
  std::vector<WholeCase> all_;
};

}  // namespace

std::vector<WholeCase> smaller_cases(const WholeCase& whole) { return Smaller(whole).take(); }

}  // namespace lockstep::fuzz
