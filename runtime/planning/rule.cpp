#include "runtime/planning/rule.h"

#include <algorithm>
#include <numeric>

#include "core/error.h"
#include "runtime/planning/check_operands.h"
#include "runtime/planning/ordered_sums.h"

namespace lockstep {
namespace {

int wrap(int64_t dim, int64_t count) {
  const int64_t bound = std::max<int64_t>(count, 1);
  if (dim < -bound || dim >= bound) fail<BadInput>("dimension {} of a tensor with {} dimensions", dim, count);
  return static_cast<int>(dim < 0 ? dim + bound : dim);
}

/// Whether an op that adds up in `to` may add up parts of a sum in `from`: integers wrap, and what a narrower floating
/// number rounds, an integer cuts off or a truth value forgets of the parts is not what it does of their sum.
bool adds_up_in(c10::ScalarType from, c10::ScalarType to) {
  const auto is_integer = [](c10::ScalarType dtype) { return c10::isIntegralType(dtype, /*includeBool=*/true); };
  if (from == to || is_integer(from) || is_integer(to)) return from == to;
  const auto part_of_from = c10::toRealValueType(from), part_of_to = c10::toRealValueType(to);
  return c10::promoteTypes(part_of_from, part_of_to) == part_of_to;
}

void finish_before_dtype_changes(const Call& call, std::vector<Linearity>& linearity) {
  const auto adds_up = [&](size_t i) {
    return std::all_of(call.results.begin(), call.results.end(),
                       [&](const ResultShape& result) { return adds_up_in(call.operand_dtypes[i], result.dtype); });
  };
  bool jointly = true;
  for (size_t i = 0; i < linearity.size(); ++i) {
    if (linearity[i] == Linearity::kEach && !adds_up(i)) linearity[i] = Linearity::kNone;
    jointly &= linearity[i] != Linearity::kJoint || adds_up(i);
  }
  if (!jointly) std::replace(linearity.begin(), linearity.end(), Linearity::kJoint, Linearity::kNone);
}

/// LibTorch adds no float8 numbers, and so there are no unfinished sums of them.
bool has_float8(const Call& call) {
  const auto is = [](const ResultShape& result) { return c10::isFloat8Type(result.dtype); };
  return std::any_of(call.operand_dtypes.begin(), call.operand_dtypes.end(), c10::isFloat8Type) ||
         std::any_of(call.results.begin(), call.results.end(), is);
}

}  // namespace

size_t Call::operand(std::string_view name) const {
  const auto number = static_cast<int>(argument_number(schema, name));
  const auto slot = std::find_if(slots.begin(), slots.end(),
                                 [=](const Slot& each) { return each.argument == number && each.element < 0; });
  LOCKSTEP_CHECK(slot != slots.end(), "{}: {} is no tensor", op, name);
  return static_cast<size_t>(slot - slots.begin());
}

int Call::dimension(std::string_view name, int64_t dim_count) const { return wrap(argument(name).toInt(), dim_count); }

std::vector<int> all_dimensions(int64_t count) {
  std::vector<int> result(static_cast<size_t>(count));
  std::iota(result.begin(), result.end(), 0);
  return result;
}

std::vector<int> Call::dimensions(std::string_view name, int64_t dim_count) const {
  std::vector<int> result;
  const auto& given = argument(name);
  if (!given.isNone())
    for (const int64_t dim : given.toIntVector()) result.push_back(wrap(dim, dim_count));
  return result.empty() ? all_dimensions(dim_count) : result;
}

std::vector<std::vector<int64_t>> Call::result_sizes() const {
  std::vector<std::vector<int64_t>> sizes;
  for (const auto& result : results) sizes.push_back(result.sizes);
  return sizes;
}

OpSharding reduced_over(const Call& call, const std::vector<int>& dims, bool keep) {
  OpSharding sharding;
  sharding.operands.resize(1);
  sharding.results.assign(call.results.size(), {});
  for (int d = 0; d < call.dims(0); ++d) {
    sharding.operands[0].push_back({d});
    const bool reduced = std::find(dims.begin(), dims.end(), d) != dims.end();
    for (auto& result : sharding.results)
      if (!reduced)
        result.push_back({d});
      else if (keep)
        result.push_back({});
  }
  return sharding;
}

OpSharding reduced_over_all(const Call& call) { return reduced_over(call, all_dimensions(call.dims(0)), false); }

bool is_pointwise(const Rule& rule) {
  std::string_view dims = rule.dims;
  while (dims.starts_with("...")) {
    dims.remove_prefix(3);
    if (dims.empty()) return true;
    dims.remove_prefix(dims.starts_with("->") ? 2 : dims.starts_with(",") ? 1 : 0);
  }
  return false;
}

bool is_own_op(const Rule& rule) { return std::string_view(rule.op).starts_with("mesh::"); }

bool reads_no_values(const Rule& rule) {
  return (rule.traits & Rule::kReadsSizesOnly) != 0 || std::string_view(rule.dims).starts_with("->");
}

OpSharding op_sharding_of(const Rule& rule, const Call& call) {
  if (!rule.sharding) check_dim_counts(rule, call);
  OpSharding sharding =
      rule.sharding ? rule.sharding(call) : parse_op_sharding(rule.dims, call.operand_sizes, call.result_sizes());
  if (sharding.linearity.empty()) sharding.linearity = parse_linearity(rule.linearity, call.slots.size());
  sharding.exact = rule.traits & Rule::kExact;
  if (rule.traits & Rule::kNoReduce) sharding.can_reduce = false;
  if (has_float8(call)) {
    sharding.can_reduce = false;
    std::fill(sharding.linearity.begin(), sharding.linearity.end(), Linearity::kNone);
  } else {
    finish_before_dtype_changes(call, sharding.linearity);
  }
  if (rule.traits & Rule::kMax) sharding.reduction = Reduction::kMax;
  if ((rule.traits & Rule::kSamples) != 0 && call.dims(0) > 0)
    sharding.batch = tree_over_batch(call.operand_sizes[0][0], call.operand_sizes[0].size(), call.batch_rows);
  sharding.disjoint = rule.traits & Rule::kDisjoint;
  sharding.rounds = rule.traits & Rule::kRounds;
  return sharding;
}

}  // namespace lockstep
