#include "runtime/planning/draws/integers.h"

#include <ATen/Functions.h>
#include <c10/core/DefaultDtype.h>

#include <limits>

#include "core/error.h"
#include "rng/permutation.h"
#include "rng/representable.h"
#include "runtime/context/random.h"
#include "runtime/context/run_context.h"
#include "runtime/context/world.h"
#include "runtime/planning/draws/drawn.h"

namespace lockstep::draws {
namespace {

using at::Tensor;

constexpr int64_t kLeast = std::numeric_limits<int64_t>::min(), kGreatest = std::numeric_limits<int64_t>::max();

/// All integers from 0 to this one have a value of their own in the dtype.
int64_t greatest_of(c10::ScalarType dtype) {
  switch (dtype) {
    case c10::kBool:
      return 1;
    case c10::kByte:
      return std::numeric_limits<uint8_t>::max();
    case c10::kChar:
      return std::numeric_limits<int8_t>::max();
    case c10::kShort:
      return std::numeric_limits<int16_t>::max();
    case c10::kInt:
      return std::numeric_limits<int32_t>::max();
    case c10::kLong:
      return kGreatest;
    case c10::kBFloat16:
      return int64_t{1} << 8;
    case c10::kHalf:
      return int64_t{1} << 11;
    case c10::kFloat:
      return int64_t{1} << 24;
    case c10::kDouble:
      return int64_t{1} << 53;
    default:
      fail<BadInput>("random integers of dtype {} cannot be drawn", c10::toString(dtype));
  }
}

/// Both ends included. Of the whole range of 64 bits its last one does not come, as it hardly would.
Tensor drawn_integers(const LocalCall& call, int64_t first, int64_t last) {
  if (last < kGreatest) return drawn(call, c10::kLong, rng::integers(first, last + 1));
  if (first == kLeast) return drawn(call, c10::kLong, rng::integers(first, last));
  return drawn(call, c10::kLong, rng::integers(first - 1, last)).add_(1);
}

void check_holds(const LocalCall& call, c10::ScalarType dtype, int64_t value) {
  const bool is_unsigned = dtype == c10::kBool || dtype == c10::kByte;
  const int64_t greatest = greatest_of(dtype), least = is_unsigned ? 0 : -greatest - 1;
  const bool is_half = dtype == c10::kHalf,
             holds = is_half ? std::abs(static_cast<double>(value)) <= 65504 : value >= least && value <= greatest;
  if (!holds && (is_half || !c10::isFloatingType(dtype)))
    fail<BadInput>("{}: {} is out of bounds for {}", call.op.schema().name(), value, c10::toString(dtype));
}

/// Integers from `first` to `last`; of what a floating-point dtype rounds, nothing leaves the range.
void give_integers(const LocalCall& call, torch::jit::Stack& stack, int64_t first, int64_t last) {
  const auto dtype = call.plan.results[0]->dtype;
  check_holds(call, dtype, first), check_holds(call, dtype, last);
  const auto values = drawn_integers(call, first, last);
  const int64_t greatest = greatest_of(dtype);
  if (!c10::isFloatingType(dtype) || (first >= -greatest && last <= greatest)) return give(call, stack, values);
  const auto kind = scalar_kind(dtype);
  const double least = rng::least_from(kind, static_cast<double>(first)),
               most = rng::greatest_up_to(kind, static_cast<double>(last));
  if (!(least <= most))
    fail<BadInput>("{}: {} holds no integer from {} to {}", call.op.schema().name(), c10::toString(dtype), first, last);
  give(call, stack, at::clamp(values.to(c10::kDouble), least, most));
}

void give_between(const LocalCall& call, torch::jit::Stack& stack, int64_t from, int64_t to) {
  if (from >= to) fail<BadInput>("{}: from {} is not below to {}", call.op.schema().name(), from, to);
  give_integers(call, stack, from, to - 1);
}

c10::ScalarType permutation_dtype(const c10::IValue& dtype) {
  return dtype.isNone() ? c10::typeMetaToScalarType(c10::get_default_dtype()) : dtype.toScalarType();
}

}  // namespace

void random(const LocalCall& call, torch::jit::Stack& stack) {
  give_integers(call, stack, 0, greatest_of(call.plan.results[0]->dtype));
}

void random_to(const LocalCall& call, torch::jit::Stack& stack) {
  give_between(call, stack, 0, call.argument(stack, "to").toInt());
}

void random_between(const LocalCall& call, torch::jit::Stack& stack) {
  const auto& to = call.argument(stack, "to");
  const int64_t from = call.argument(stack, "from").toInt();
  if (!to.isNone()) return give_between(call, stack, from, to.toInt());
  const bool all_bits = from == kLeast;  // LibTorch's way to ask for them
  const int64_t last = all_bits ? kGreatest : greatest_of(call.plan.results[0]->dtype);
  if (from > last) fail<BadInput>("random_: from {} is not below {}, the greatest number of its dtype", from, last);
  give_integers(call, stack, from, last);
}

void permutation(const LocalCall& call, torch::jit::Stack& stack) {
  const auto& result = *call.plan.results[0];
  auto order = at::empty(result.sizes, c10::kLong);
  auto* values = order.mutable_data_ptr<int64_t>();
  const auto count = static_cast<uint64_t>(order.numel());
  if (count > 0) {
    const rng::Permutation place(rng::Key{call.context.seed()}, call.stream, count);
    for (uint64_t i = 0; i < count; ++i) values[i] = static_cast<int64_t>(place(i));
  }
  stack = {order.to(result.layout.mesh().world().shard_device(), storage(result))};
}

std::vector<ResultShape> permutation_shape(const Call& call) {
  const int64_t n = call.argument("n").toInt();
  const auto dtype = permutation_dtype(call.argument("dtype"));
  if (n < 0) fail<BadInput>("randperm: n is {}, expected 0 or more", n);
  if (n - 1 > greatest_of(dtype))
    fail<BadInput>("randperm: {} does not hold all of {} numbers", c10::toString(dtype), n);
  return {{{n}, {}, dtype}};
}

}  // namespace lockstep::draws
