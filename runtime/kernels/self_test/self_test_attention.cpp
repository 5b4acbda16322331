#include <vector>

#include "runtime/kernels/attention/attention_oracle.h"
#include "runtime/kernels/self_test/self_test_comparer.h"

namespace lockstep::kernels {
namespace {

// Two blocks of keys, the second of two leaves of query rows, heads that share keys, odd widths.
constexpr int64_t kGroup = 2, kRows = 35, kFirst = 35, kAllRows = 70, kKeys = 277, kDepth = 5, kWidth = 7;
constexpr AttentionShape kShape{1, 1, kGroup, kRows, kKeys, kDepth, kWidth, /*causal=*/true, /*first_row=*/242, 0.37};

/// Documents, one of which begins before these rows, and draws that begin anywhere in a block of words.
struct BroughtAlong {
  std::vector<int64_t> places, draws;

  BroughtAlong() {
    for (int64_t row = 0; row < kRows; ++row) places.push_back(row < 20 ? 100 + row : row - 20);
    for (int64_t row = 0; row < kGroup * kRows; ++row)
      draws.insert(draws.end(), {7, int64_t{3} << 33, 1000 + 281 * row});
  }
  AttentionShape shape() const {
    auto with = kShape;
    with.places = places.data();
    with.dropout = {0.3, {draws.data(), 0, kRows * kDrawsOfRow, kDrawsOfRow, 1}};
    return with;
  }
};

template <class T>
HeadTensor<T> heads(T* data, int64_t rows, int64_t width) {
  return {data, 0, rows * width, width, 1};
}

template <class Input, class T>
class Attention {
 public:
  Attention(const AttentionShape& shape, int64_t shift, const std::vector<T>& log_sum)
      : shape_(shape),
        query_(any_numbers<Input>(kGroup * kRows * kDepth, shift, 3)),
        key_(any_numbers<Input>(kKeys * kDepth, shift, 4)),
        value_(any_numbers<Input>(kKeys * kWidth, shift, 5)),
        gradient_(any_numbers<Input>(kGroup * kRows * kWidth, shift, 6)),
        output_(any_numbers<Input>(kGroup * kRows * kWidth, shift, 7)),
        log_sum_(kGroup * kRows, shift) {
    std::copy(log_sum.begin(), log_sum.end(), log_sum_.data());
  }

  /// Output and log-sum-exp, one after the other.
  static constexpr int64_t kForwardResults = kGroup * kRows * (kWidth + 1);
  AttentionForward<Input, T> forward(T* results) {
    return {shape_,
            heads<const Input>(query_.data(), kRows, kDepth),
            heads<const Input>(key_.data(), kKeys, kDepth),
            heads<const Input>(value_.data(), kKeys, kWidth),
            heads(results, kRows, kWidth),
            heads(results + kGroup * kRows * kWidth, kRows, 1)};
  }

  /// Gradients of query, key and value, one after the other.
  static constexpr int64_t kBackwardResults = kGroup * kRows * kDepth + kKeys * (kDepth + kWidth);
  AttentionBackward<Input, T> backward(T* results) {
    T *key = results + kGroup * kRows * kDepth, *value = key + kKeys * kDepth;
    return {shape_,
            heads<const Input>(gradient_.data(), kRows, kWidth),
            heads<const Input>(query_.data(), kRows, kDepth),
            heads<const Input>(key_.data(), kKeys, kDepth),
            heads<const Input>(value_.data(), kKeys, kWidth),
            heads<const Input>(output_.data(), kRows, kWidth),
            heads<const T>(log_sum_.data(), kRows, 1),
            kFirst,
            kAllRows,
            heads(results, kRows, kDepth),
            heads(key, kKeys, kDepth),
            heads(value, kKeys, kWidth),
            0,
            0};
  }

 private:
  AttentionShape shape_;
  ShiftedBuffer<Input> query_, key_, value_, gradient_, output_;
  ShiftedBuffer<T> log_sum_;
};

template <class Input, class T>
void test(SelfTestComparer& comparer, const char* forward, const char* backward, const AttentionShape& shape = kShape) {
  using Case = Attention<Input, T>;
  std::vector<T> expected(Case::kForwardResults), expected_back(Case::kBackwardResults);
  Case aligned(shape, 0, {});
  attention_forward_oracle<Input, T>(aligned.forward(expected.data()));
  const std::vector<T> log_sum(expected.end() - kGroup * kRows, expected.end());
  Case with_sums(shape, 0, log_sum);
  attention_backward_oracle<Input, T>(with_sums.backward(expected_back.data()));
  constexpr int64_t kShift = 5, kOffset = kShift * sizeof(Input);
  for (const InstructionSet set : available_instruction_sets()) {
    Case attention(shape, kShift, log_sum);
    ShiftedBuffer<T> ours(Case::kForwardResults, kShift), ours_back(Case::kBackwardResults, kShift);
    attention_forward<Input, T>(attention.forward(ours.data()), {}, set);
    attention_backward<Input, T>(attention.backward(ours_back.data()), {}, set);
    comparer.expect({forward, set, kOffset}, ours, expected);
    comparer.expect({backward, set, kOffset}, ours_back, expected_back);
  }
}

}  // namespace

void test_attention(SelfTestComparer& comparer) {
  test<float, float>(comparer, "attention", "attention backward");
  test<double, double>(comparer, "attention in float64", "attention backward in float64");
  test<Bfloat16, float>(comparer, "attention of bfloat16", "attention backward of bfloat16");
  const BroughtAlong with;
  test<float, float>(comparer, "attention with dropout", "attention with dropout backward", with.shape());
}

}  // namespace lockstep::kernels
