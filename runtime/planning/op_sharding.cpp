#include "runtime/planning/op_sharding.h"

#include <algorithm>
#include <cctype>

#include "core/error.h"
#include "runtime/planning/dims_text.h"

namespace lockstep {
namespace {

/// Labels 0..25 are letters; the i-th leading dimension of "..." counted from the right is label kDots + i.
constexpr int kDots = 26;

void add_letters(std::string_view letters, OpShardingDims& dims) {
  for (const char letter : letters)
    dims.push_back({std::isupper(static_cast<unsigned char>(letter)) ? OpShardingDim::kWhole : letter - 'a'});
}

OpShardingDims label_dims(const DimsTerm& term, size_t count) {
  OpShardingDims dims;
  add_letters(term.before, dims);
  for (size_t i = count - term.letters(); i-- > 0;) dims.push_back({kDots + static_cast<int>(i)});
  add_letters(term.after, dims);
  return dims;
}

/// A dimension of size 1 that is broadcast against a larger one stays whole.
void leave_broadcast_whole(std::vector<OpShardingDims>& dims, const std::vector<std::vector<int64_t>>& sizes,
                           const std::vector<int64_t>& label_sizes) {
  for (size_t o = 0; o < dims.size(); ++o)
    for (size_t d = 0; d < dims[o].size(); ++d) {
      auto& dim = dims[o][d];
      if (dim.label != OpShardingDim::kWhole && sizes[o][d] != label_sizes[static_cast<size_t>(dim.label)])
        dim.label = OpShardingDim::kWhole;
    }
}

}  // namespace

int OpSharding::label_count() const {
  int count = 0;
  for (const auto* side : {&operands, &results})
    for (const auto& dims : *side)
      for (const auto& dim : dims) count = std::max(count, dim.label + 1);
  return count;
}

int OpSharding::find(const OpShardingDims& dims, int label) {
  for (size_t d = 0; d < dims.size(); ++d)
    if (dims[d].label == label) return static_cast<int>(d);
  return -1;
}

OpSharding parse_op_sharding(std::string_view text, const std::vector<std::vector<int64_t>>& operand_sizes,
                             const std::vector<std::vector<int64_t>>& result_sizes) {
  const auto terms = parse_dims(text);
  LOCKSTEP_CHECK(terms, "rule \"{}\" names no dimensions", text);
  OpSharding sharding;
  for (size_t i = 0; i < operand_sizes.size(); ++i) {
    const auto& term = DimsText::of(terms->operands, i);
    const size_t count = operand_sizes[i].size();
    expect_dim_count("", i, count, term, text);  // some meta kernels of LibTorch's let it pass
    sharding.operands.push_back(label_dims(term, count));
  }
  for (size_t i = 0; i < result_sizes.size(); ++i) {
    const auto& term = DimsText::of(terms->results, i);
    const size_t count = result_sizes[i].size();
    const bool not_asked_for = !term.fits(count) && result_sizes[i] == std::vector<int64_t>{0};  // as of svd's vectors
    LOCKSTEP_CHECK(not_asked_for || term.fits(count), "rule \"{}\" does not fit a result of {} dimensions", text,
                   count);
    sharding.results.push_back(not_asked_for ? OpShardingDims(1) : label_dims(term, count));
  }
  std::vector<int64_t> label_sizes(static_cast<size_t>(sharding.label_count()), 1);
  const auto widen = [&](const std::vector<OpShardingDims>& side, const std::vector<std::vector<int64_t>>& sizes) {
    for (size_t o = 0; o < side.size(); ++o)
      for (size_t d = 0; d < side[o].size(); ++d)
        if (side[o][d].label != OpShardingDim::kWhole) {
          auto& size = label_sizes[static_cast<size_t>(side[o][d].label)];
          if (size == 1) size = sizes[o][d];
        }
  };
  widen(sharding.operands, operand_sizes);
  widen(sharding.results, result_sizes);
  leave_broadcast_whole(sharding.operands, operand_sizes, label_sizes);
  leave_broadcast_whole(sharding.results, result_sizes, label_sizes);
  return sharding;
}

std::vector<Linearity> parse_linearity(std::string_view text, size_t operand_count) {
  std::vector<Linearity> result;
  for (size_t i = 0; i < operand_count; ++i) {
    const char c = text.empty() ? '-' : text[std::min(i, text.size() - 1)];
    LOCKSTEP_CHECK(std::string_view("-eja").find(c) != std::string_view::npos, "linearity \"{}\"", text);
    result.push_back(c == 'e'   ? Linearity::kEach
                     : c == 'j' ? Linearity::kJoint
                     : c == 'a' ? Linearity::kAdditive
                                : Linearity::kNone);
  }
  return result;
}

}  // namespace lockstep
