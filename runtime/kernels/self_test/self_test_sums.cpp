#include "runtime/kernels/self_test/self_test_comparer.h"
#include "runtime/kernels/sums/integer_sum_oracle.h"
#include "runtime/kernels/sums/ordered_sum_oracle.h"

namespace lockstep::kernels {
namespace {

/// Calls run(sum, result) and oracle(sum, expected) at every set and shift; both find their operands by the shift.
template <class T, class Oracle, class Run>
void test(SelfTestComparer& comparer, const char* name, const loops::OrderedSum& sum, const Oracle& oracle,
          const Run& run) {
  const auto nodes = static_cast<int64_t>(cover(sum.tree, sum.first, sum.count).size());
  std::vector<T> expected(static_cast<std::size_t>(nodes * sum.outer * sum.inner));
  oracle(expected.data());
  for (const InstructionSet set : available_instruction_sets())
    for (int64_t shift = 0; shift < 16; ++shift) {
      ShiftedBuffer<T> ours(nodes * sum.outer * sum.inner, shift);
      run(shift, ours.data(), set);
      comparer.expect({name, set, shift * static_cast<int64_t>(sizeof(T))}, ours, expected);
    }
}

/// All but the first of 64 leaves of 33 elements, of which the last is short: nodes of 1 to 32 leaves.
loops::OrderedSum along_rows(int64_t outer) { return {SumTree::over_elements(2100), 33, outer, 2067, 1}; }

/// The same of 8 leaves of 42.
loops::OrderedSum along_columns() { return {SumTree::over_elements(333), 42, 1, 291, 19}; }

/// Of 8 leaves of the usual 32 the last seven.
loops::OrderedSum along_usual_columns() { return {SumTree::over_elements(256), 32, 1, 224, 19}; }

/// 16 rows at once and one more: of 4 leaves of 50 the last three, a node of one and one of two.
loops::OrderedSum along_short_rows() { return {SumTree::over_elements(200), 50, 17, 150, 1}; }

template <class T>
void test_sum(SelfTestComparer& comparer, const char* name, const loops::OrderedSum& sum) {
  const int64_t count = sum.outer * sum.count * sum.inner;
  auto aligned = any_numbers<T>(count, 0, 11);
  test<T>(
      comparer, name, sum, [&](T* out) { ordered_sum_oracle<T>(sum, aligned.data(), out); },
      [&](int64_t shift, T* out, InstructionSet set) {
        loops::ordered_sum<T>(sum, any_numbers<T>(count, shift, 11).data(), out, set);
      });
}

template <class T>
void test_exponentials(SelfTestComparer& comparer, const char* name, const loops::OrderedSum& sum) {
  const int64_t count = sum.outer * sum.count;
  auto x = any_numbers<T>(count, 0, 12), maximum = any_numbers<T>(sum.outer, 0, 13);
  test<T>(
      comparer, name, sum, [&](T* out) { exponential_sum_oracle<T>(sum, x.data(), maximum.data(), out); },
      [&](int64_t shift, T* out, InstructionSet set) {
        loops::ordered_exponential_sum<T>(sum, any_numbers<T>(count, shift, 12).data(), maximum.data(), out, set);
      });
}

template <class T>
void test_norm_gradient(SelfTestComparer& comparer, const char* name, const loops::OrderedSum& sum) {
  const int64_t rows = sum.outer * sum.count, count = rows * sum.inner;
  auto g = any_numbers<T>(count, 0, 14), x = any_numbers<T>(count, 0, 15), r = any_numbers<T>(rows, 0, 16);
  test<T>(
      comparer, name, sum, [&](T* out) { norm_gradient_oracle<T>(sum, g.data(), x.data(), r.data(), out); },
      [&](int64_t shift, T* out, InstructionSet set) {
        auto shifted = any_numbers<T>(count, shift, 15);
        loops::ordered_norm_gradient<T>(sum, g.data(), shifted.data(), r.data(), out, set);
      });
}

/// A block, a part of one, and a rest that is no whole vector.
template <class T>
void test_squares(SelfTestComparer& comparer, const char* name) {
  constexpr int64_t kCount = 4096 + 128 + 5;
  constexpr double kScale = 0x1p26;  // numbers are below 2
  const auto sum = scaled_squares_oracle<T>(kCount, any_numbers<T>(kCount, 0, 18).data(), kScale);
  const std::vector<int64_t> expected{static_cast<int64_t>(sum >> 32), static_cast<int64_t>(sum & 0xffffffff)};
  for (const InstructionSet set : available_instruction_sets())
    for (int64_t shift = 0; shift < 16; ++shift) {
      const auto words = loops::scaled_squares<T>(kCount, any_numbers<T>(kCount, shift, 18).data(), kScale, set);
      ShiftedBuffer<int64_t> ours(2, 0);
      ours.data()[0] = words.high, ours.data()[1] = words.low;
      comparer.expect({name, set, shift * static_cast<int64_t>(sizeof(T))}, ours, expected);
    }
}

}  // namespace

void test_ordered_sums(SelfTestComparer& comparer) {
  test_sum<float>(comparer, "sum along rows", along_rows(2));
  test_sum<float>(comparer, "sum along short rows", along_short_rows());
  test_sum<float>(comparer, "sum along columns", along_columns());
  test_sum<float>(comparer, "sum along columns of usual leaves", along_usual_columns());
  test_sum<double>(comparer, "sum along rows in float64", along_rows(1));
  test_sum<double>(comparer, "sum along columns in float64", along_columns());
  test_exponentials<float>(comparer, "sum of exponentials", along_rows(2));
  test_exponentials<double>(comparer, "sum of exponentials in float64", along_rows(1));
  test_norm_gradient<float>(comparer, "gradient of a norm's weight", along_columns());
  test_squares<float>(comparer, "squares of a gradient norm");
  test_squares<double>(comparer, "squares of a gradient norm in float64");
}

void test_table_gradients(SelfTestComparer& comparer) {
  constexpr int64_t kLength = 70, kSamples = 3, kWidth = 9, kRows = 4;
  const loops::TableGradient shape{SumTree::over_samples(5), 2, kSamples, kLength, kWidth,
                                   kSamples * kLength,       1, kRows};
  std::vector<int64_t> tokens;
  for (int64_t i = 0; i < shape.count; ++i) tokens.push_back((i + 1) % 5);
  const auto nodes = cover(shape.samples, shape.first_sample, shape.sample_count).size();
  std::vector<float> expected(nodes * kRows * kWidth);
  auto gradient = any_numbers<float>(shape.count * kWidth, 0, 17);
  table_gradient_oracle<float>(shape, tokens.data(), gradient.data(), expected.data());
  for (const InstructionSet set : available_instruction_sets())
    for (int64_t shift = 0; shift < 16; ++shift) {
      auto shifted = any_numbers<float>(shape.count * kWidth, shift, 17);
      ShiftedBuffer<float> ours(static_cast<int64_t>(expected.size()), shift);
      loops::table_gradient<float>(shape, tokens.data(), shifted.data(), ours.data(), set);
      comparer.expect({"table gradient", set, shift * 4}, ours, expected);
    }
}

}  // namespace lockstep::kernels
