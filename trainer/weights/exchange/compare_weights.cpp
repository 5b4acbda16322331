#include "trainer/weights/exchange/compare_weights.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <fmt/format.h>

#include <cmath>
#include <set>

#include "trainer/weights/checkpoint_weights.h"
#include "trainer/weights/exchange/open_weights.h"

namespace lockstep::trainer {
namespace {

/// Rows of about 64 MiB at a time.
int64_t rows_at_once(const std::vector<int64_t>& sizes) {
  constexpr int64_t kElements = 1 << 24;
  const auto row = std::max<int64_t>(1, c10::multiply_integers(sizes) / std::max<int64_t>(1, sizes[0]));
  return std::max<int64_t>(1, kElements / row);
}

WeightDifference difference_of(const WeightSource& a, const WeightSource& b, const std::string& name) {
  const auto& sizes = a.sizes().at(name);
  WeightDifference result{name, "", 0, c10::multiply_integers(sizes)};
  double square = 0, norm = 0;
  for (int64_t first = 0; first < sizes[0]; first += rows_at_once(sizes)) {
    const auto count = std::min(rows_at_once(sizes), sizes[0] - first);
    const auto left = a.rows(name, first, count), right = b.rows(name, first, count);
    result.different += left.view(at::kInt).ne(right.view(at::kInt)).sum().item<int64_t>();
    const auto gap = (left.to(at::kDouble) - right.to(at::kDouble)).abs();
    if (gap.numel() > 0) result.largest = std::max(gap.max().item<double>(), result.largest);
    square += gap.square().sum().item<double>();
    norm += right.to(at::kDouble).square().sum().item<double>();
  }
  result.relative = square > 0 ? std::sqrt(square / norm) : 0;
  return result;
}

}  // namespace

namespace {

std::unique_ptr<WeightSource> opened(const std::string& folder, bool both_are_checkpoints) {
  return both_are_checkpoints ? open_checkpoint(folder, CheckpointPart::kAll) : open_weights(folder);
}

}  // namespace

std::vector<WeightDifference> compare_weights(const std::string& a, const std::string& b,
                                              const std::function<void(int64_t, int64_t)>& done) {
  const bool both = is_checkpoint_folder(a) && is_checkpoint_folder(b);
  const auto left = opened(a, both), right = opened(b, both);
  std::set<std::string> names;
  for (const auto* source : {left.get(), right.get()})
    for (const auto& [name, sizes] : source->sizes()) names.insert(name);
  std::vector<WeightDifference> all;
  int64_t compared = 0;
  for (const auto& name : names) {
    const auto in_left = left->sizes().find(name), in_right = right->sizes().find(name);
    if (in_left == left->sizes().end() || in_right == right->sizes().end())
      all.push_back({name, fmt::format("only in {}", in_right == right->sizes().end() ? a : b)});
    else if (in_left->second != in_right->second)
      all.push_back({name, fmt::format("sizes {} and {}", c10::str(c10::IntArrayRef(in_left->second)),
                                       c10::str(c10::IntArrayRef(in_right->second)))});
    else if (auto found = difference_of(*left, *right, name); found.different > 0)
      all.push_back(std::move(found));
    if (done) done(++compared, static_cast<int64_t>(names.size()));
  }
  return all;
}

}  // namespace lockstep::trainer
