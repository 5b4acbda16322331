#include "consistency/difference.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <optional>

#include "consistency/damage.h"
#include "consistency/origin.h"
#include "core/error.h"
#include "runtime/plain/plain_tensors.h"

namespace lockstep {
namespace {

std::vector<int64_t> unravel(int64_t flat, c10::IntArrayRef sizes) {
  std::vector<int64_t> index(sizes.size());
  for (size_t d = sizes.size(); d-- > 0;) {
    index[d] = flat % sizes[d];
    flat /= sizes[d];
  }
  return index;
}

at::Tensor as_doubles(const at::Tensor& tensor) {
  return (tensor.is_complex() ? tensor.abs() : tensor).to(c10::kDouble);
}

double largest(const at::Tensor& tensor) {
  if (tensor.numel() == 0) return 1;
  const auto values = as_doubles(tensor);
  const auto scale = at::where(values.isfinite(), values.abs(), at::zeros_like(values)).max();
  return std::max(scale.item<double>(), 1e-300);
}

bool rounds(const at::Tensor& tensor) { return tensor.is_floating_point() || tensor.is_complex(); }

/// Of complex numbers both parts.
at::Tensor widened(const at::Tensor& tensor) {
  return tensor.to(tensor.is_complex() ? c10::kComplexDouble : c10::kDouble);
}

/// Elementwise |candidate - reference| over `scale`; infinite where exactly one is NaN.
at::Tensor relative_errors(const at::Tensor& reference, const at::Tensor& candidate, double scale) {
  const auto agree = at::logical_or(reference == candidate, at::logical_and(reference.isnan(), candidate.isnan()));
  auto errors = ((candidate - reference).abs() / scale).nan_to_num(HUGE_VAL, HUGE_VAL, HUGE_VAL);
  return errors.masked_fill(agree, 0);
}

/// The bits of each element as an integer, where there is one of that size.
at::Tensor as_integers(const at::Tensor& tensor) {
  if (!tensor.is_floating_point()) return tensor;
  const auto size = tensor.element_size();
  return tensor.contiguous().view(size == 2 ? c10::kShort : size == 4 ? c10::kInt : c10::kLong);
}

/// The real and the imaginary part of each number.
at::Tensor as_pairs(const at::Tensor& tensor) { return at::view_as_real(tensor.resolve_conj()); }

at::Tensor bits_differ(const at::Tensor& reference, const at::Tensor& candidate) {
  if (reference.is_complex()) return bits_differ(as_pairs(reference), as_pairs(candidate)).any(-1);
  auto differ = as_integers(reference) != as_integers(candidate);
  if (!reference.is_floating_point()) return differ;
  return at::logical_and(differ, at::logical_not(at::logical_and(reference.isnan(), candidate.isnan())));
}

int64_t count_bits(const at::Tensor& reference, const at::Tensor& candidate, const at::Tensor& wrong) {
  if (reference.is_complex()) return count_bits(as_pairs(reference), as_pairs(candidate), wrong.unsqueeze(-1));
  if (!reference.is_floating_point()) return 0;
  const auto words = at::bitwise_xor(as_integers(reference), as_integers(candidate)).masked_select(wrong);
  const auto wide = words.to(c10::kLong);
  const int64_t mask = words.element_size() == 8 ? -1 : (int64_t{1} << (8 * words.element_size())) - 1;
  int64_t count = 0;
  for (int64_t i = 0; i < wide.numel(); ++i)
    count += std::popcount(static_cast<uint64_t>(wide.const_data_ptr<int64_t>()[i] & mask));
  return count;
}

std::string list(c10::IntArrayRef values) {
  std::string text;
  for (const int64_t value : values) text += fmt::format("{}{}", text.empty() ? "" : ", ", value);
  return "[" + text + "]";
}

/// Goes through the parts of a tensor, and remembers the worst.
class Comparer {
 public:
  using Cut = std::function<at::Tensor(const at::Tensor&)>;

  /// `allowed`: of each element, instead of the tolerance; or not defined.
  Comparer(const at::Tensor& expected, double tolerance, const at::Tensor& allowed = {})
      : expected_(expected), tolerance_(tolerance), allowed_(allowed) {
    result_.elements = expected.numel();
  }

  /// `cut` gives the part of a whole tensor that `part` should be. REQUIRES: of equal sizes.
  void add(const at::Tensor& part, const Cut& cut, int rank) {
    ++looked_at_;
    const auto reference = cut(expected_);
    LOCKSTEP_CHECK(reference.scalar_type() == part.scalar_type(), "{} and {}", c10::toString(reference.scalar_type()),
                   c10::toString(part.scalar_type()));
    if (reference.numel() == 0 || (compares_bits() && same_bits(reference, part))) return;
    if (!scale_) scale_ = largest(expected_);
    const auto errors = relative_errors(widened(reference), widened(part), *scale_);
    const auto shares = shares_of_allowed(errors, reference, part, cut);
    const auto wrong = compares_bits() ? bits_differ(reference, part) : shares > 1;
    if (wrong.any().item<bool>()) note(part, reference, wrong, cut, rank);
    remember_worst(errors, compares_bits() ? errors : shares, wrong, reference, part, cut);
  }

  /// `origin`: of wrong values.
  Difference result(const std::function<std::string(const Damage&)>& origin = {}) {
    if (!candidate_.defined()) return std::move(result_);
    result_.wrong_elements = wrong_.sum().item<int64_t>();
    result_.pattern = damage_text(expected_, candidate_, wrong_, origin ? origin({expected_, candidate_, wrong_}) : "");
    if (result_.ranks.size() == looked_at_) result_.ranks.clear();
    return std::move(result_);
  }

 private:
  bool compares_bits() const { return (tolerance_ < 0 && !allowed_.defined()) || !rounds(expected_); }

  /// 1: as large as may be.
  at::Tensor shares_of_allowed(const at::Tensor& errors, const at::Tensor& reference, const at::Tensor& part,
                               const Cut& cut) {
    if (compares_bits()) return {};
    if (!allowed_.defined()) return (errors / tolerance_).masked_fill(errors == 0, 0);
    const auto allowed = cut(allowed_);
    const auto distances = (part - reference).abs().nan_to_num(HUGE_VAL, HUGE_VAL, HUGE_VAL);
    auto shares = (distances / allowed).masked_fill(at::logical_or(errors == 0, allowed.isinf()), 0);
    result_.over_bound = std::max(result_.over_bound, shares.max().item<double>());
    return shares;
  }

  void note(const at::Tensor& part, const at::Tensor& reference, const at::Tensor& wrong, const Cut& cut, int rank) {
    if (!candidate_.defined()) {
      candidate_ = expected_.clone();
      wrong_ = at::zeros(expected_.sizes(), c10::kBool);
    }
    cut(candidate_).copy_(part);
    cut(wrong_).logical_or_(wrong);
    if (compares_bits()) result_.differing_bits += count_bits(reference, part, wrong);
    result_.ranks.push_back(rank);
  }

  /// By `ranks`, which are errors or shares of what is allowed.
  void remember_worst(const at::Tensor& errors, const at::Tensor& ranks, const at::Tensor& wrong,
                      const at::Tensor& reference, const at::Tensor& part, const Cut& cut) {
    const auto flat = ranks.reshape({-1});
    auto at = flat.argmax().item<int64_t>();
    const double worst = flat[at].item<double>();
    if (worst < worst_ || (worst <= 0 && has_worst_)) return;
    if (worst <= 0) at = wrong.reshape({-1}).to(c10::kInt).argmax().item<int64_t>();
    has_worst_ = true;
    worst_ = worst;
    result_.relative = errors.reshape({-1})[at].item<double>();
    const auto places = at::arange(std::max<int64_t>(expected_.numel(), 1)).view(expected_.sizes());
    result_.index = unravel(cut(places).reshape({-1})[at].item<int64_t>(), expected_.sizes());
    result_.reference = as_doubles(reference).reshape({-1})[at].item<double>();
    result_.candidate = as_doubles(part).reshape({-1})[at].item<double>();
  }

  at::Tensor expected_, candidate_, wrong_;
  double tolerance_;
  at::Tensor allowed_;
  std::optional<double> scale_;
  bool has_worst_ = false;
  double worst_ = 0;
  size_t looked_at_ = 0;
  Difference result_;
};

}  // namespace

Difference difference_of_sizes(c10::IntArrayRef sizes, c10::IntArrayRef expected) {
  Difference difference;
  difference.elements = c10::multiply_integers(expected);
  difference.sizes = fmt::format("sizes {}, one device: {}", list(sizes), list(expected));
  return difference;
}

Difference difference_of(const at::Tensor& plain, const at::Tensor& expected, double tolerance) {
  const at::NoGradGuard no_grad;
  if (plain.sizes() != expected.sizes()) return difference_of_sizes(plain.sizes(), expected.sizes());
  Comparer comparer(expected, tolerance);
  comparer.add(
      plain, [](const at::Tensor& whole) { return whole; }, 0);
  return comparer.result();
}

namespace {

std::vector<int> with_sharers(const TensorSpec& spec, const std::vector<int>& ranks) {
  std::vector<int> all;
  for (const int rank : ranks)
    for (const int sharer : sharers(spec, rank)) all.push_back(sharer);
  std::sort(all.begin(), all.end());
  return all;
}

Difference difference_by(Comparer comparer, const HeldShards& held, const at::Tensor& expected) {
  const auto& spec = *held.spec;
  if (expected.sizes() != c10::IntArrayRef(spec.sizes)) return difference_of_sizes(spec.sizes, expected.sizes());
  const auto values = finished(held);
  for (size_t r = 0; r < values.ranks.size(); ++r) {
    const int rank = values.ranks[r];
    comparer.add(
        values.shards[r], [&](const at::Tensor& whole) { return part_of(spec, whole, rank); }, rank);
  }
  auto difference = comparer.result([&](const Damage& damage) { return origin_of(held, values, damage); });
  if (spec.any_partial) difference.ranks = with_sharers(spec, difference.ranks);
  return difference;
}

}  // namespace

Difference difference_of(const HeldShards& held, const at::Tensor& expected, double tolerance) {
  const PlainTensors guard;
  const at::NoGradGuard no_grad;
  return difference_by(Comparer(expected, tolerance), held, expected);
}

Difference difference_within(const HeldShards& held, const at::Tensor& expected, const at::Tensor& allowed) {
  const PlainTensors guard;
  const at::NoGradGuard no_grad;
  return difference_by(Comparer(expected, 0, allowed.broadcast_to(expected.sizes())), in_doubles(held), expected);
}

bool are_close(const HeldShards& held, const at::Tensor& expected, const at::Tensor& allowed) {
  const PlainTensors guard;
  const auto& spec = *held.spec;
  if (expected.sizes() != c10::IntArrayRef(spec.sizes)) return false;
  const auto limits = allowed.defined() ? allowed.broadcast_to(expected.sizes()) : allowed;
  const auto shards = finished(held);
  for (size_t r = 0; r < shards.ranks.size(); ++r) {
    const auto part = part_of(spec, expected, shards.ranks[r]);
    if (same_bits(part, shards.shards[r])) continue;
    const bool is_close =
        limits.defined()
            ? ((part - shards.shards[r]).abs_() <= part_of(spec, limits, shards.ranks[r])).all().item<bool>()
            : at::equal(part, shards.shards[r]);
    if (!is_close) return false;
  }
  return true;
}

std::string ranks_text(const std::vector<int>& ranks) {
  std::string text;
  for (size_t first = 0, last = 0; first < ranks.size(); first = last + 1) {
    for (last = first; last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1;) ++last;
    text += fmt::format("{}{}", text.empty() ? "" : ", ", ranks[first]);
    if (last > first) text += fmt::format("-{}", ranks[last]);
  }
  return (ranks.size() == 1 ? "rank " : "ranks ") + text;
}

std::string Difference::text() const {
  const auto place = index.empty() || !sizes.empty() ? std::string() : list(index);
  const auto what = name.empty() ? kind : fmt::format("{} of {}{}", kind, name, place);
  if (!sizes.empty()) return fmt::format("{}: {}", what, sizes);
  const auto values = fmt::format("{} = {:.10g}, {}: {:.10g}", what, candidate, reference_name, reference);
  if (name.empty()) return fmt::format("{} (relative {:.1e})", values, relative);
  const auto share = over_bound > 0 ? fmt::format(", {:.3g} times what rounding may do", over_bound) : "";
  return fmt::format("{} (relative {:.1e}{}; {} of {} elements wrong{}{})", values, relative, share, wrong_elements,
                     elements, ranks.empty() ? "" : ", on " + ranks_text(ranks), pattern.empty() ? "" : ": " + pattern);
}

}  // namespace lockstep
