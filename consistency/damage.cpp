#include "consistency/damage.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <optional>

namespace lockstep {
namespace {

/// The one value that all elements have, to the precision of a float.
std::optional<double> common_value(const at::Tensor& values) {
  const auto least = values.min().item<double>(), most = values.max().item<double>();
  if (!std::isfinite(least) || !std::isfinite(most) || most - least > 1e-5 * std::abs(most)) return std::nullopt;
  return (least + most) / 2;
}

bool differs_by_one_bit(const at::Tensor& expected, const at::Tensor& candidate) {
  if (expected.scalar_type() != c10::kFloat || candidate.scalar_type() != c10::kFloat) return false;
  const auto a = std::bit_cast<uint32_t>(expected.item<float>()), b = std::bit_cast<uint32_t>(candidate.item<float>());
  return std::popcount(a ^ b) == 1;
}

/// Of several elements: the simplest change that makes all of them.
std::string change(const at::Tensor& expected, const at::Tensor& candidate, const std::string& origin) {
  const auto left = expected.to(c10::kDouble), right = candidate.to(c10::kDouble);
  if (!right.isfinite().all().item<bool>()) return "NaN or infinite";
  if (!right.any().item<bool>()) return "zeros";
  if (!origin.empty()) return origin;
  if (left.ne(0).all().item<bool>())
    if (const auto factor = common_value(right / left); factor && std::abs(*factor - 1) > 1e-4)
      return fmt::format("times {:.6g}", *factor);
  if (const auto summand = common_value(right - left); summand && std::abs(*summand) > 0)
    return fmt::format("plus {:.6g}", *summand);
  if (at::equal(std::get<0>(left.sort()), std::get<0>(right.sort()))) return "the same values in another order";
  return "";
}

/// The least box that holds all wrong elements: "everywhere", "in [4:8, 0:16]"; "within ..." where others lie in it,
/// too.
std::string extent(const at::Tensor& wrong) {
  const auto places = wrong.nonzero();
  if (places.size(0) == wrong.numel()) return "everywhere";
  const auto first = std::get<0>(places.min(0)), last = std::get<0>(places.max(0));
  std::string text;
  int64_t volume = 1;
  for (int64_t dim = 0; dim < wrong.dim(); ++dim) {
    const auto from = first[dim].item<int64_t>(), to = last[dim].item<int64_t>() + 1;
    text += fmt::format("{}{}:{}", text.empty() ? "" : ", ", from, to);
    volume *= to - from;
  }
  return fmt::format("{} [{}]", volume == places.size(0) ? "in" : "within", text);
}

}  // namespace

std::string damage_text(const at::Tensor& expected, const at::Tensor& candidate, const at::Tensor& wrong,
                        const std::string& origin) {
  const auto left = expected.masked_select(wrong), right = candidate.masked_select(wrong);
  if (left.numel() == 1 && wrong.numel() > 1)
    return differs_by_one_bit(left, right) ? "one bit, in one element" : "one element";
  const auto what = change(left, right, origin), where = extent(wrong);
  return what.empty() ? where : what + ", " + where;
}

}  // namespace lockstep
