#include "trainer/checkpoint/exact_cover.h"

#include <algorithm>
#include <map>

namespace lockstep::trainer {
namespace {

constexpr size_t kMostCutDimensions = 8;

/// Dimensions along which some box is a part only: in the others there is nothing to compare.
std::vector<size_t> cut_dimensions(const std::vector<int64_t>& shape, std::span<const Box> boxes) {
  std::vector<size_t> cut;
  for (size_t d = 0; d < shape.size(); ++d)
    if (std::any_of(boxes.begin(), boxes.end(), [&](const Box& box) { return box.size[d] != shape[d]; }))
      cut.push_back(d);
  return cut;
}

/// How many boxes lie over each point, as its mixed difference along the cut dimensions: a box adds 1 and -1 at its
/// corners by turns. Such differences determine what they are of, so those of a tiling are those of the whole.
class CornerSums {
 public:
  explicit CornerSums(std::vector<size_t> dimensions) : dimensions_(std::move(dimensions)) {}

  void add(const Box& box, int64_t sign) {
    for (size_t corner = 0; corner < size_t{1} << dimensions_.size(); ++corner) {
      std::vector<int64_t> point;
      auto value = sign;
      for (size_t i = 0; i < dimensions_.size(); ++i) {
        const bool is_end = (corner >> i & 1) != 0;
        point.push_back(box.offset[dimensions_[i]] + (is_end ? box.size[dimensions_[i]] : 0));
        if (is_end) value = -value;
      }
      sums_[point] += value;
    }
  }

  bool are_zero() const {
    return std::all_of(sums_.begin(), sums_.end(), [](const auto& entry) { return entry.second == 0; });
  }

 private:
  std::vector<size_t> dimensions_;
  std::map<std::vector<int64_t>, int64_t> sums_;
};

}  // namespace

std::string_view cover_problem(const std::vector<int64_t>& shape, std::span<const Box> boxes) {
  constexpr std::string_view kOverlap = "chunks that do not overlap";
  const auto whole = Box::whole(shape);
  std::vector<Box> full;
  auto missing = whole.elements();
  for (const auto& box : boxes) {
    if (box.elements() == 0) continue;
    full.push_back(box);
    missing -= box.elements();
    if (missing < 0) return kOverlap;
  }
  if (missing > 0) return "chunks that cover the tensor";
  if (full.empty()) return {};
  auto cut = cut_dimensions(shape, full);
  if (cut.size() > kMostCutDimensions) return "chunks that are cut along at most 8 dimensions";
  CornerSums sums(std::move(cut));
  sums.add(whole, -1);
  for (const auto& box : full) sums.add(box, 1);
  return sums.are_zero() ? std::string_view{} : kOverlap;
}

}  // namespace lockstep::trainer
