#include "trainer/mutation/spoil.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>

#include <cmath>

#include "consistency/held_shards.h"
#include "runtime/plain/lazy_copy.h"

namespace lockstep::trainer {
namespace {

constexpr const char* kNames[] = {"times",     "plus",           "zeros",           "negated",           "rolled",
                                  "reversed",  "a bit",          "an element",      "no last row",       "in bfloat16",
                                  "old value", "another rank's", "another group's", "as before the move"};

at::Tensor with_bit(const at::Tensor& value, double amount) {
  auto changed = value.clone().contiguous();
  const auto bytes = static_cast<uint64_t>(changed.nbytes());
  // A high bit of some element: the lowest ones of what is rounded away later change nothing.
  const auto element = static_cast<uint64_t>(amount) * 2654435761u % static_cast<uint64_t>(changed.numel());
  const auto size = bytes / static_cast<uint64_t>(changed.numel());
  const auto bit = changed.scalar_type() == at::kBool ? 0 : 20 + static_cast<uint64_t>(amount) % 11;
  auto* memory = static_cast<uint8_t*>(changed.mutable_data_ptr()) + element * size;
  memory[std::min(bit / 8, size - 1)] ^= static_cast<uint8_t>(1u << (bit % 8));
  return changed;
}

at::Tensor with_element(const at::Tensor& value, double amount) {
  auto changed = value.clone().contiguous();
  auto one = changed.view({-1})[static_cast<int64_t>(amount) % changed.numel()];
  one.copy_(changed.scalar_type() == at::kBool ? one.logical_not() : one * 2 + 1);
  return changed;
}

at::Tensor rolled(const at::Tensor& value, double amount) {
  return amount > 0 || value.dim() == 0 ? value.reshape({-1}).roll(1).view(value.sizes()) : value.roll(1, 0);
}

at::Tensor without_last_row(const at::Tensor& value) {
  auto changed = value.clone();
  if (value.dim() > 0) changed.select(0, value.size(0) - 1).zero_();
  return changed;
}

at::Tensor multiplied(const at::Tensor& value, double amount) {
  if (value.is_floating_point()) return value * amount;
  return value.scalar_type() == at::kBool ? value.logical_not() : value * static_cast<int64_t>(std::ceil(amount) + 1);
}

at::Tensor increased(const at::Tensor& value, double amount) {
  if (value.is_floating_point()) return value + amount;
  return value.scalar_type() == at::kBool ? value.logical_not() : value + int64_t{1};
}

at::Tensor changed(Change change, double amount, const at::Tensor& value, const at::Tensor& other,
                   const at::Tensor& old) {
  const bool is_bool = value.scalar_type() == at::kBool;
  switch (change) {
    case Change::kTimes:
      return multiplied(value, amount);
    case Change::kPlus:
      return increased(value, amount);
    case Change::kZero:
      return at::zeros_like(value);
    case Change::kNegate:
      return is_bool ? value.logical_not() : value.neg();
    case Change::kRoll:
      return rolled(value, amount);
    case Change::kReverse:
      return value.reshape({-1}).flip(0).view(value.sizes());
    case Change::kBit:
      return with_bit(value, amount);
    case Change::kElement:
      return with_element(value, amount);
    case Change::kLastRow:
      return without_last_row(value);
    case Change::kRounded:
      return value.is_floating_point() ? value.to(at::kBFloat16).to(value.scalar_type()) : value;
    case Change::kOld:
      return old.defined() && old.sizes() == value.sizes() ? old : at::zeros_like(value);
    case Change::kOtherRank:
    case Change::kOtherGroup:
    case Change::kBefore:
      break;
  }
  return other.defined() && other.sizes() == value.sizes() && other.scalar_type() == value.scalar_type() ? other
                                                                                                         : value;
}

}  // namespace

const char* to_text(Change change) { return kNames[static_cast<size_t>(change)]; }

bool spoil(Change change, double amount, const at::Tensor& value, const at::Tensor& other, const std::string& key,
           Memory& memory) {
  const at::NoGradGuard no_grad;
  if (value.numel() == 0) return false;
  const auto before = value.detach().clone();
  const auto after = changed(change, amount, before, other, memory[key]);
  if (change == Change::kOld) memory[key] = before;
  const bool differs = !same_bits(before, after.to(before.scalar_type()));
  before_write(value);
  value.detach().copy_(after);
  return differs;
}

}  // namespace lockstep::trainer
