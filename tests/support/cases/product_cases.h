#pragma once
#include <rapidcheck.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <thread>
#include <vector>

#include "core/elementary/portable.h"
#include "runtime/kernels/products/product_oracle.h"

/// Random products for comparing kernels with their oracle.
namespace lockstep::testing {

/// Equal bits, or NaN both.
template <class T>
bool same_number(T a, T b) {
  return (std::isnan(a) && std::isnan(b)) || std::memcmp(&a, &b, sizeof(T)) == 0;
}

template <class T>
bool same_numbers(const std::vector<T>& a, const std::vector<T>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), same_number<T>);
}

/// How many numbers are something else than normal ones. Sums of products of kMiddle lie beside the middle of two
/// floats, where rounding once and rounding twice differ; kNegativeZero is nothing but -0.
enum class Numbers { kNormal, kTiny, kSpecial, kMiddle, kNegativeZero };

/// Numbers of T that matter: least normal ones and below, large ones, and those about the middle of two others.
template <class T>
struct Special {
  static constexpr T kOften[] = {0.0f, -0.0f, 1e-23f, -1e-23f, 1e-40f, -1e-42f, 3e-30f};
  static constexpr T kLarge = 3e38f;
  static constexpr T kMiddle[] = {1, -1, 1 + 0x1p-23f, 1 + 0x1p-20f, 0x1p-24f * (1 - 0x1p-20f)};
};
template <>
struct Special<double> {
  static constexpr double kOften[] = {0.0, -0.0, 1e-162, -1e-162, 1e-310, -1e-320, 3e-230};
  static constexpr double kLarge = 1.7e308;
  static constexpr double kMiddle[] = {1, -1, 1 + 0x1p-52, 1 + 0x1p-45, 0x1p-53 * (1 - 0x1p-45)};
};

template <class T>
T number(std::mt19937& random, Numbers kind) {
  const auto normal = static_cast<T>(std::normal_distribution<double>()(random));  // all bits of T
  if (kind == Numbers::kNormal) return normal;
  constexpr T kInfinity = std::numeric_limits<T>::infinity(), kNan = std::numeric_limits<T>::quiet_NaN();
  constexpr T kRare[] = {kInfinity, -kInfinity, kNan, Special<T>::kLarge, -Special<T>::kLarge};
  if (kind == Numbers::kNegativeZero) return T(-0.0);
  if (kind == Numbers::kMiddle) return Special<T>::kMiddle[random() % 5];
  if (kind == Numbers::kTiny) return Special<T>::kOften[random() % 7] * (random() % 3 == 0 ? T(1) : normal);
  const auto choice = random() % 200;
  return choice == 0 ? kRare[random() % 5] : choice < 20 ? Special<T>::kOften[random() % 7] : normal;
}
template <>
inline kernels::Bfloat16 number(std::mt19937& random, Numbers kind) {
  return {static_cast<uint16_t>(portable::bits<uint32_t>(number<float>(random, kind)) >> 16)};
}

/// Boundaries of leaves, `from` to `to` of all.
inline std::pair<int64_t, int64_t> leaf_range(const SumTree& tree) {
  const int64_t from = *rc::gen::inRange<int64_t>(0, tree.leaf_count() + 1);
  const int64_t to = *rc::gen::inRange<int64_t>(from, tree.leaf_count() + 1);
  const bool all = *rc::gen::inRange(0, 2) == 0;
  if (all) return {0, tree.size};
  return {std::min(from * tree.leaf, tree.size), std::min(to * tree.leaf, tree.size)};
}

inline kernels::Contraction any_contraction() {
  const auto over_samples = *rc::gen::inRange(0, 2) == 1;
  const int64_t elements = *rc::gen::weightedOneOf<int64_t>({{3, rc::gen::inRange<int64_t>(0, 70)},
                                                             {2, rc::gen::inRange<int64_t>(0, 700)},
                                                             {1, rc::gen::inRange<int64_t>(0, 3000)}});
  if (!over_samples) {
    const auto [from, to] = leaf_range(SumTree::over_elements(elements));
    return kernels::Contraction::over(elements, from, to - from);
  }
  const int64_t samples = *rc::gen::inRange<int64_t>(0, 40);
  const auto [from, to] = leaf_range(SumTree::over_samples(samples));
  if (samples == 1) return kernels::Contraction::over_samples(1, 0, 1, elements % 100);
  return kernels::Contraction::over_samples(samples, from, to - from, elements % 100);
}

/// A factor in memory of its own: any of the usual layouts, padded, at any address.
template <class Input>
struct OwnedFactor {
  OwnedFactor(int64_t rows, const kernels::Contraction& c, Numbers kind, std::mt19937& random) {
    const int64_t pad = random() % 3, e = c.elements, s = c.samples;
    switch (random() % 4) {
      case 0:
        factor = {nullptr, s * (e + pad) + pad, random() % 2 == 0 ? e : e + pad, 1};
        break;
      case 1:
        factor = {nullptr, 1, (rows + pad) * e, rows + pad};
        break;
      case 2:
        factor = {nullptr, 2, (2 * rows + pad) * e + 3, 2 * rows + pad};
        break;
      default:
        factor = {nullptr, static_cast<int64_t>(random() % 2), static_cast<int64_t>(random() % 3),
                  static_cast<int64_t>(random() % 2)};
    }
    const std::size_t shift = random() % 5;
    memory.resize(
        static_cast<std::size_t>(rows * factor.row_stride + s * factor.sample_stride + e * factor.element_stride) +
        shift + 1);
    for (auto& value : memory) value = number<Input>(random, kind);
    factor.data = memory.data() + shift;
  }

  std::vector<Input> memory;
  kernels::Factor<Input> factor;
};

/// Threads that take items in turns.
inline kernels::Workers thread_workers(int count) {
  return {count, [count](int64_t items, const std::function<void(int64_t)>& work) {
            std::vector<std::thread> threads;
            for (int thread = 0; thread < count; ++thread)
              threads.emplace_back([&, thread] {
                for (int64_t item = thread; item < items; item += count) work(item);
              });
            for (auto& thread : threads) thread.join();
          }};
}

/// One random product, and what the oracle says about it.
template <class Input, class T>
struct ProductCase {
  static ProductCase any() {
    const auto seed = *rc::gen::arbitrary<uint32_t>();
    const auto m = *rc::gen::inRange<int64_t>(0, 40),
               n = *rc::gen::weightedOneOf<int64_t>(
                   {{4, rc::gen::inRange<int64_t>(0, 70)}, {1, rc::gen::inRange<int64_t>(0, 600)}});
    return ProductCase(m, n, any_contraction(),
                       *rc::gen::element(Numbers::kNormal, Numbers::kTiny, Numbers::kSpecial, Numbers::kMiddle,
                                         Numbers::kNegativeZero),
                       seed);
  }

  ProductCase(int64_t rows, int64_t columns, const kernels::Contraction& c, Numbers kind, uint32_t seed)
      : m(rows), n(columns), contraction(c), random(seed), a(m, c, kind, random), b(n, c, kind, random) {
    node_count = static_cast<int64_t>(kernels::nodes_of(c).size());
    expected = untouched();
    kernels::product_oracle<Input, T>(m, n, a.factor, b.factor, contraction, output(expected));
  }

  /// What a kernel with the arguments of kernels::product makes of it.
  template <class Kernel>
  std::vector<T> run(const Kernel& kernel) const {
    auto result = untouched();
    if (m > 0 && n > 0) kernel(m, n, a.factor, b.factor, contraction, output(result));
    return result;
  }

  std::vector<T> run(InstructionSet set, int threads) const {
    return run(
        [&](const auto&... arguments) { kernels::product<Input, T>(arguments..., thread_workers(threads), set); });
  }

  int64_t m, n, node_count = 0;
  kernels::Contraction contraction;
  std::mt19937 random;
  OwnedFactor<Input> a, b;
  std::vector<T> expected;

 private:
  static constexpr int64_t kPad = 3;  ///< columns that nobody may write
  std::vector<T> untouched() const {
    return std::vector<T>(static_cast<std::size_t>(node_count * m * (n + kPad)), T(7));
  }
  kernels::ProductOutput<T> output(std::vector<T>& memory) const { return {memory.data(), n + kPad, m * (n + kPad)}; }
};

/// Property: the kernel gives the oracle's bits, whatever the sizes, layouts, parts and numbers.
template <class Input, class T, class Kernel>
void product_equals_oracle(const Kernel& kernel) {
  const auto product = ProductCase<Input, T>::any();
  RC_ASSERT(same_numbers(product.run(kernel), product.expected));
}

}  // namespace lockstep::testing
