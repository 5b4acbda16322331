// Loops must be vectorised here for the comparison between instruction sets to mean something.
#if defined(__GNUC__) && !defined(__clang__)
#  pragma GCC optimize("O3", "no-math-errno", "no-trapping-math")
#endif
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "core/digest/digest.h"
#include "core/elementary/elementary.h"
#include "core/elementary/instruction_set.h"
#include "tests/support/instruction_sets.h"

/// The elementary functions give the same bits one by one, in vectorised loops of every instruction set, and for ever.
namespace lockstep {
namespace {

#define LOCKSTEP_FUNCTION(Name, expression)     \
  struct Name {                                 \
    template <class T>                          \
    LOCKSTEP_PORTABLE T operator()(T x) const { \
      return elementary::expression;            \
    }                                           \
  }
LOCKSTEP_FUNCTION(Exp, exp(x));
LOCKSTEP_FUNCTION(NormalExp, normal_exp(x));
LOCKSTEP_FUNCTION(Beyond, normal_tail(portable::absolute(x)).beyond);
LOCKSTEP_FUNCTION(Exp2, exp2(x));
LOCKSTEP_FUNCTION(Log, log(x));
LOCKSTEP_FUNCTION(Tanh, tanh(x));
LOCKSTEP_FUNCTION(Sin, sin(x));
LOCKSTEP_FUNCTION(Cos, cos(x));
#undef LOCKSTEP_FUNCTION

template <class F, class T>
void map_baseline(const T* __restrict x, T* __restrict y, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) y[i] = F()(x[i]);
}
template <class F, class T>
LOCKSTEP_TARGET_AVX2 void map_avx2(const T* __restrict x, T* __restrict y, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) y[i] = F()(x[i]);
}
template <class F, class T>
LOCKSTEP_TARGET_AVX512 void map_avx512(const T* __restrict x, T* __restrict y, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) y[i] = F()(x[i]);
}

template <class F, class T>
void map(InstructionSet set, const std::vector<T>& x, std::vector<T>& y) {
  if (set == InstructionSet::kAvx512) return map_avx512<F, T>(x.data(), y.data(), x.size());
  if (set == InstructionSet::kAvx2) return map_avx2<F, T>(x.data(), y.data(), x.size());
  map_baseline<F, T>(x.data(), y.data(), x.size());
}

/// A third each: any bit pattern (NaN, infinities, subnormals), moderate values, values near 0.
template <class T>
std::vector<T> arguments() {
  using Word = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
  std::mt19937_64 random(99);
  std::vector<T> values;
  for (int i = 0; i < 100000; ++i) {
    values.push_back(portable::bits<T>(static_cast<Word>(random())));
    values.push_back(static_cast<T>(static_cast<double>(random() >> 12) * 0x1p-45 - 64.0));
    values.push_back(static_cast<T>(static_cast<double>(random() >> 12) * 0x1p-51 - 1.0));
  }
  return values;
}

/// NaN compares as a class: its payload is nobody's promise.
template <class T>
std::string digest_of(std::vector<T> values) {
  for (T& value : values) {
    if (std::isnan(value)) value = std::numeric_limits<T>::quiet_NaN();
  }
  return digest(std::as_bytes(std::span(values))).text().substr(0, 16);
}

class ElementaryBits : public testing::OnInstructionSet {
 protected:
  template <class F, class T>
  void expect_bits(const char* expected) {
    const auto x = arguments<T>();
    std::vector<T> y(x.size());
    map<F, T>(GetParam(), x, y);
    EXPECT_EQ(digest_of(y), expected);
  }
};
INSTANTIATE_TEST_SUITE_P(Sets, ElementaryBits, testing::every_set(), testing::set_name);

TEST_P(ElementaryBits, SinglePrecision) {
  expect_bits<Exp, float>("a61736649796b50e");
  expect_bits<NormalExp, float>("b4e1715587ba71bd");
  expect_bits<Beyond, float>("1fc6cfa74e8f147b");
  expect_bits<Exp2, float>("3a555f1f9ed585be");
  expect_bits<Log, float>("6cf2ab135c6e2d83");
  expect_bits<Tanh, float>("0265b7de48ed9014");
  expect_bits<Sin, float>("608153e7f6d4ac05");
  expect_bits<Cos, float>("aa3b439fc5693a5d");
}

TEST_P(ElementaryBits, DoublePrecision) {
  expect_bits<Exp, double>("59422853674f3586");
  expect_bits<NormalExp, double>("8018e12802891716");
  expect_bits<Beyond, double>("22088cae5378c684");
  expect_bits<Exp2, double>("87bd8a504b5b52a8");
  expect_bits<Log, double>("02c66bbd850f7e87");
  expect_bits<Tanh, double>("5a6ccf45334951b6");
  expect_bits<Sin, double>("cec37c39152c39c4");
  expect_bits<Cos, double>("ec3e1c88b60efaa9");
}

}  // namespace
}  // namespace lockstep
