#include "runtime/planning/check_operands.h"

#include <ATen/ExpandUtils.h>

#include <map>
#include <optional>

#include "core/error.h"
#include "runtime/planning/dims_text.h"

namespace lockstep {
namespace {

class Checker {
 public:
  Checker(const Rule& rule, const Call& call) : rule_(rule), call_(call), broadcasts_(!is_own_op(rule)) {}

  void run(const DimsText& dims) {
    for (size_t i = 0; i < call_.operand_sizes.size(); ++i) check(i, DimsText::of(dims.operands, i));
  }

 private:
  void check(size_t operand, const DimsTerm& term) {
    const auto& sizes = call_.operand_sizes[operand];
    expect_dim_count(rule_.op, operand, sizes.size(), term, rule_.dims);
    for (size_t d = 0; d < term.before.size(); ++d) expect(operand, d, std::string(1, term.before[d]), false);
    const size_t first = sizes.size() - term.after.size();
    for (size_t d = 0; d < term.after.size(); ++d) expect(operand, first + d, std::string(1, term.after[d]), false);
    if (!term.dots) return;
    if (!broadcasts_) expect_leading_count(operand, first - term.before.size());
    for (size_t d = term.before.size(); d < first; ++d)
      expect(operand, d, fmt::format("...{}", first - d), broadcasts_);
  }

  void expect_leading_count(size_t operand, size_t count) {
    if (!leading_) leading_ = count;
    if (*leading_ != count)
      fail<BadInput>("{}: operand {} has {} leading dimensions, others have {} ({})", rule_.op, operand, count,
                     *leading_, rule_.dims);
  }

  void expect(size_t operand, size_t dim, const std::string& label, bool broadcasts) {
    const int64_t size = call_.operand_sizes[operand][dim];
    auto& known = sizes_.try_emplace(label, size, operand).first->second;
    if (known.first == size || (broadcasts && size == 1)) return;
    if (broadcasts && known.first == 1)
      known = {size, operand};
    else
      fail<BadInput>("{}: dimension {} of operand {} has {} elements, and operand {} has {} there ({})", rule_.op, dim,
                     operand, size, known.second, known.first, rule_.dims);
  }

  const Rule& rule_;
  const Call& call_;
  bool broadcasts_;
  std::optional<size_t> leading_;
  std::map<std::string, std::pair<int64_t, size_t>> sizes_;  ///< per label: size, and an operand that has it
};

}  // namespace

void check_operands(const Rule& rule, const Call& call) {
  // Where sizes decide how dims are read, LibTorch's rows check them where they give the result's sizes.
  const bool fixed = !rule.sharding || is_own_op(rule);
  if (!fixed) return;
  if (const auto dims = parse_dims(rule.dims)) Checker(rule, call).run(*dims);
}

void check_dim_counts(const Rule& rule, const Call& call) {
  const auto dims = parse_dims(rule.dims);
  LOCKSTEP_CHECK(dims, "rule \"{}\" names no dimensions", rule.dims);
  for (size_t i = 0; i < call.operand_sizes.size(); ++i)
    expect_dim_count(rule.op, i, call.operand_sizes[i].size(), DimsText::of(dims->operands, i), rule.dims);
}

void check_fits_written(const Rule& rule, const Call& call, size_t written) {
  const c10::IntArrayRef self = call.operand_sizes[written];
  for (size_t i = 0; i < call.operand_sizes.size(); ++i) {
    const c10::IntArrayRef operand = call.operand_sizes[i];
    if (!at::is_expandable_to(operand, self))
      fail<BadInput>("{}: operand {} of sizes {} cannot be broadcast to what is written, {}", rule.op, i,
                     c10::str(operand), c10::str(self));
  }
}

namespace {

using Specs = std::span<const TensorSpec* const>;

[[noreturn]] void refuse_packed(const Call& call, Specs given, const char* why) {
  fail<BadInput>(
      "{} does not take packed rows ({}): {}; what computes from each row alone does, and the ops of "
      "runtime/own_ops/expert_ops.h",
      call.op, texts_of(given), why);
}

/// Whether an operand can stand beside these rows: rows of as many cells, or elements that all rows share.
bool fits_beside(const TensorSpec& rows, const TensorSpec& other) {
  if (!other.is_packed()) return other.dim_count() <= rows.dim_count() - rows.packing.cells;
  const auto cells = static_cast<ptrdiff_t>(rows.packing.cells);
  return other.packing == rows.packing &&
         std::equal(rows.sizes.begin(), rows.sizes.begin() + cells, other.sizes.begin());
}

}  // namespace

std::string texts_of(Specs specs) {
  std::string text;
  for (const auto* spec : specs) text += fmt::format("{}{}", text.empty() ? "" : ", ", spec ? spec->text() : "plain");
  return text;
}

void keep_packing(const Rule& rule, Call& call, Specs given) {
  const auto rows = std::find_if(given.begin(), given.end(), [](auto* spec) { return spec && spec->is_packed(); });
  if (rows == given.end() || (rule.traits & (Rule::kPacks | Rule::kUnpacks))) return;
  if (rule.traits & Rule::kReadsSizesOnly) refuse_packed(call, given, "it gives new values for all elements");
  if (rule.traits & Rule::kRandom) refuse_packed(call, given, "it draws for every element");
  if (!is_pointwise(rule) && !(rule.traits & Rule::kOfRows))
    refuse_packed(call, given, "its elements come from several rows");
  for (const auto* spec : given)
    if (is_pointwise(rule) && spec && !fits_beside(**rows, *spec))
      refuse_packed(call, given, "another operand has its own cells, or elements for every cell");
  for (auto& shape : call.results) {
    shape.packing = (*rows)->packing;
    shape.strides.clear();
  }
}

}  // namespace lockstep
