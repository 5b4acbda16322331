#pragma once
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

#include "core/elementary/portable.h"
#include "runtime/kernels/products/product_loops.h"
#include "runtime/kernels/self_test/self_test.h"

/// What the parts of the self-test share.
namespace lockstep::kernels {

/// `count` elements that begin `shift` elements past a cache line.
template <class T>
class ShiftedBuffer {
 public:
  ShiftedBuffer(int64_t count, int64_t shift)
      : storage_(static_cast<std::size_t>(count + shift + kLine)), count_(count) {
    const auto address = reinterpret_cast<std::uintptr_t>(storage_.data()) / sizeof(T);
    begin_ = static_cast<int64_t>((kLine - address % kLine) % kLine) + shift;
  }
  T* data() { return storage_.data() + begin_; }
  int64_t size() const { return count_; }

 private:
  static constexpr int64_t kLine = 64 / sizeof(T);
  std::vector<T> storage_;
  int64_t count_, begin_;
};

/// Numbers with signs and many exponents, so that any other order of adding them gives other bits.
template <class Input>
ShiftedBuffer<Input> any_numbers(int64_t count, int64_t shift, uint32_t seed) {
  ShiftedBuffer<Input> values(count, shift);
  for (int64_t i = 0; i < count; ++i) {
    seed = seed * 1664525u + 1013904223u;
    const float number = portable::bits<float>((seed & 0x80ffffffu) | 0x38000000u | (seed >> 8 & 0x7u) << 24);
    if constexpr (std::is_same_v<Input, Bfloat16>)
      values.data()[i] = {static_cast<uint16_t>(portable::bits<uint32_t>(number) >> 16)};
    else if constexpr (std::is_same_v<Input, float>)
      values.data()[i] = number;
    else  // all 53 bits of a double: products of floats are exact in it, and tell no fma from two roundings
      values.data()[i] = static_cast<Input>(static_cast<double>(number) * (1 + (seed >> 8 & 0xffff) * 0x1p-42));
  }
  return values;
}

/// Compares results with oracles, bit by bit, and counts.
class SelfTestComparer {
 public:
  explicit SelfTestComparer(const Tamper& tamper) : tamper_(tamper) {}

  template <class T>
  void expect(const SelfTestCase& which, ShiftedBuffer<T>& actual, const std::vector<T>& expected) {
    ++comparisons_;
    const std::size_t bytes = expected.size() * sizeof(T);
    if (tamper_) tamper_(which, actual.data(), bytes);
    if (std::memcmp(actual.data(), expected.data(), bytes) == 0) return;
    std::size_t first = 0;
    while (std::memcmp(actual.data() + first, &expected[first], sizeof(T)) == 0) ++first;
    refuse(which, first, expected.size(), static_cast<double>(actual.data()[first]),
           static_cast<double>(expected[first]));
  }

  int64_t comparisons() const { return comparisons_; }

 private:
  [[noreturn]] static void refuse(const SelfTestCase& which, std::size_t element, std::size_t size, double actual,
                                  double expected);

  const Tamper& tamper_;
  int64_t comparisons_ = 0;
};

void test_tree(SelfTestComparer& comparer);
void test_products(SelfTestComparer& comparer);
void test_attention(SelfTestComparer& comparer);
void test_ordered_sums(SelfTestComparer& comparer);
void test_table_gradients(SelfTestComparer& comparer);
void test_rows(SelfTestComparer& comparer);

}  // namespace lockstep::kernels
