// The arguments of calls: sizes and plain tensors.
#include <ATen/Functions.h>
#include <rapidcheck.h>

#include <cmath>

#include "fuzz/cases/drawn.h"
#include "fuzz/cases/op_cases.h"

namespace lockstep::testing {
namespace {

uint64_t scramble(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

/// A multiple of 2^-16: what scatter() adds to it and takes away again leaves it as it was, in fp32 too, so that ops
/// with integer results see the same values in every layout.
double between(uint64_t bits, double low, double high) {
  return low + (high - low) * static_cast<double>(bits >> 46) * 0x1p-18;
}

Sizes group(const Sizes& factors, const std::vector<bool>& ends) {
  Sizes sizes;
  int64_t size = 1;
  for (size_t i = 0; i < factors.size(); ++i) {
    size *= factors[i];
    if (!ends[i] && i + 1 < factors.size()) continue;
    sizes.push_back(size);
    size = 1;
  }
  return sizes;
}

}  // namespace

Inputs::Inputs(c10::ScalarType dtype, bool exact, Reach reach)
    : dtype_(dtype), exact_(exact), reach_(reach), salt_(static_cast<uint64_t>(number(0, 999)) * 1000) {}

int64_t Inputs::number(int64_t low, int64_t high) const { return drawn(*rc::gen::inRange<int64_t>(low, high + 1)); }

bool Inputs::draws_long() const {
  if (reach_ != Reach::kLong || long_left_ == 0 || number(0, 2) < 2) return false;
  --long_left_;
  return true;
}

at::Scalar Inputs::factor(int64_t most) const {
  if (reach_ != Reach::kShort && flag()) return 1.0 / 3;
  return number(1, most);
}

int64_t Inputs::length(int64_t most) const { return draws_long() ? number(33, 300) : number(1, most); }

int64_t Inputs::size() const {
  if (draws_long()) return number(33, 300);
  return drawn(
      *rc::gen::weightedOneOf<int64_t>({{14, rc::gen::inRange<int64_t>(1, 7)}, {1, rc::gen::just<int64_t>(0)}}));
}

Sizes Inputs::sizes(int64_t least_dims, int64_t most_dims) const {
  if (reach_ == Reach::kFlat) return {number(100, 1500)};
  Sizes result(static_cast<size_t>(number(least_dims, most_dims)));
  for (auto& entry : result) entry = size();
  return result;
}

int64_t Inputs::dimension(size_t count) const {
  const auto dims = std::max<int64_t>(static_cast<int64_t>(count), 1);
  const auto dim = number(0, dims - 1);
  return flag() ? dim - dims : dim;
}

std::pair<Sizes, Sizes> Inputs::regrouped() const {
  Sizes factors(static_cast<size_t>(number(0, 5)));
  for (auto& factor : factors)
    factor = *rc::gen::weightedOneOf<int64_t>({{20, rc::gen::inRange<int64_t>(1, 5)}, {1, rc::gen::just<int64_t>(0)}});
  std::vector<bool> first, second;
  for (size_t i = 0; i < factors.size(); ++i) {
    first.push_back(flag());
    second.push_back(flag());
  }
  return {group(factors, first), group(factors, second)};
}

Sizes Inputs::broadcast(const Sizes& sizes) const {
  if (reach_ == Reach::kFlat) return sizes;
  const auto dropped = *rc::gen::weightedElement<int64_t>({{6, 0}, {1, 1}, {1, 2}, {1, 3}});
  Sizes result(sizes.begin() + std::min(dropped, static_cast<int64_t>(sizes.size())), sizes.end());
  for (auto& size : result)
    if (number(0, 5) == 5) size = 1;
  return result;
}

template <class Value>
at::Tensor Inputs::fill(const Sizes& sizes, c10::ScalarType dtype, const Value& value) {
  auto wide = at::empty(sizes, at::kDouble);
  auto* data = wide.mutable_data_ptr<double>();
  ++salt_;
  for (int64_t i = 0; i < wide.numel(); ++i)
    data[i] = value(scramble(salt_ * 0x9e3779b97f4a7c15u + static_cast<uint64_t>(i)));
  return wide.to(dtype);
}

double Inputs::real(uint64_t bits) const {
  if (reach_ == Reach::kShort) return between(bits, -2, 2);
  const double fraction = static_cast<double>(bits >> 11) * 0x1p-52 - 1;
  return std::ldexp(fraction, static_cast<int>(bits % 24) - 16);
}

int64_t Inputs::whole(uint64_t bits) const {
  const bool is_narrow = dtype_ == c10::kBFloat16 || dtype_ == c10::kHalf;  // sums of 216 products stay below 2^8
  const int64_t range = is_narrow ? 1 : 4;
  const auto drawn = static_cast<int64_t>(bits % static_cast<uint64_t>(2 * range + 1));
  if (dtype_ == c10::kBool) return drawn % 2;
  return dtype_ == c10::kByte ? drawn : drawn - range;
}

at::Tensor Inputs::tensor(const Sizes& sizes) {
  const auto part = [&] {
    return fill(sizes, c10::toRealValueType(dtype_),
                [&](uint64_t bits) { return exact_ ? static_cast<double>(whole(bits)) : real(bits); });
  };
  const auto first = part();
  return c10::isComplexType(dtype_) ? at::complex(first, part()) : first;
}

at::Tensor Inputs::wider(const Sizes& sizes) {
  const auto values = tensor(sizes);
  return dtype_ == c10::kBFloat16 && number(0, 3) == 3 ? values.to(c10::kFloat) : values;
}

at::Tensor Inputs::positive(const Sizes& sizes) {
  return fill(sizes, dtype_,
              [&](uint64_t bits) { return exact_ ? static_cast<double>(1 << (bits % 3)) : between(bits, 0.5, 2.5); });
}

at::Tensor Inputs::distinct(const Sizes& sizes) {
  uint64_t next = salt_;
  const int low = dtype_ == c10::kByte || dtype_ == c10::kBool ? 0 : -125, modulus = dtype_ == c10::kBool ? 2 : 251;
  return fill(sizes, dtype_, [&](uint64_t) { return static_cast<double>(next++ * 7 % modulus) + low; });
}

at::Tensor Inputs::mask(const Sizes& sizes) {
  return fill(sizes, c10::kBool, [](uint64_t bits) { return static_cast<double>(bits & 1); });
}

at::Tensor Inputs::integers(const Sizes& sizes, int64_t low, int64_t high) {
  const auto count = static_cast<uint64_t>(high - low + 1);
  return fill(sizes, c10::kLong,
              [&](uint64_t bits) { return static_cast<double>(low + static_cast<int64_t>(bits % count)); });
}

}  // namespace lockstep::testing
