#include "runtime/kernels/rows/row_oracle.h"
#include "runtime/kernels/rows/softmax_oracle.h"
#include "runtime/kernels/self_test/self_test_comparer.h"

namespace lockstep::kernels {
namespace {

/// Two rows of several groups of 16 and a rest, pairs in the heads of a row.
constexpr loops::Rows kRows{2, 46};
constexpr int64_t kCount = kRows.count * kRows.width, kHeads = 1;
constexpr int64_t kTargets[] = {5, -1};
template <class T>
constexpr auto kEpsilon = T(1e-5);
template <class T>
constexpr loops::AdamwStep<T> kStep{T(0.7), T(0.99), T(0.9), T(0.1), T(0.95), T(0.05), T(1e-3), T(0.3), T(1e-8)};

/// Operands that each begin `shift` elements past a cache line.
template <class T>
struct Operands {
  explicit Operands(int64_t shift)
      : x(any_numbers<T>(2 * kCount, shift, 21)),
        g(any_numbers<T>(kCount, shift, 22)),
        weight(any_numbers<T>(kCount, shift, 23)),
        positive(any_numbers<T>(kCount, shift, 24)) {
    for (int64_t i = 0; i < kCount; ++i) positive.data()[i] = std::abs(positive.data()[i]);
  }
  ShiftedBuffer<T> x, g, weight, positive;
};

/// Runs kernel(operands, results, set) at every set and some shifts, and oracle(operands, expected).
template <class T, class Oracle, class Kernel>
void test(SelfTestComparer& comparer, const char* name, int64_t results, const Oracle& oracle, const Kernel& kernel) {
  std::vector<T> expected(static_cast<std::size_t>(results));
  Operands<T> aligned(0);
  oracle(aligned, expected.data());
  for (const InstructionSet set : available_instruction_sets())
    for (const int64_t shift : {0, 1, 3, 6, 15}) {
      Operands<T> operands(shift);
      ShiftedBuffer<T> ours(results, shift);
      kernel(operands, ours.data(), set);
      comparer.expect({name, set, shift * static_cast<int64_t>(sizeof(T))}, ours, expected);
    }
}

template <class T>
void test_norm(SelfTestComparer& comparer) {
  test<T>(
      comparer, "RMSNorm", kCount + kRows.count,
      [](auto& o, T* y) { rms_norm_oracle<T>(kRows, o.x.data(), o.weight.data(), y, y + kCount, kEpsilon<T>); },
      [](auto& o, T* y, InstructionSet set) {
        loops::rms_norm<T>(kRows, o.x.data(), o.weight.data(), y, y + kCount, kEpsilon<T>, set);
      });
  test<T>(
      comparer, "RMSNorm backward", kCount + kRows.width,
      [](auto& o, T* dx) {
        rms_norm_backward_oracle<T>(kRows, o.g.data(), o.x.data(), o.positive.data(), o.weight.data(), dx, dx + kCount);
      },
      [](auto& o, T* dx, InstructionSet set) {
        loops::rms_norm_backward<T>(kRows, o.g.data(), o.x.data(), o.positive.data(), o.weight.data(), dx, dx + kCount,
                                    set);
      });
}

template <class T>
void test_gates(SelfTestComparer& comparer) {
  test<T>(
      comparer, "SwiGLU", kCount, [](auto& o, T* out) { swiglu_oracle<T>(kRows, o.x.data(), out); },
      [](auto& o, T* out, InstructionSet set) { loops::swiglu<T>(kRows, o.x.data(), out, set); });
  test<T>(
      comparer, "SwiGLU backward", 2 * kCount,
      [](auto& o, T* out) { swiglu_backward_oracle<T>(kRows, o.g.data(), o.x.data(), out); },
      [](auto& o, T* out, InstructionSet set) { loops::swiglu_backward<T>(kRows, o.g.data(), o.x.data(), out, set); });
}

template <class T>
void test_rotation(SelfTestComparer& comparer, const char* name) {
  test<T>(
      comparer, name, kCount,
      [](auto& o, T* y) {
        rotate_pairs_oracle<T>(kRows.count, kHeads, kRows.width, o.x.data(), o.g.data(), o.weight.data(), T(-1), y);
      },
      [](auto& o, T* y, InstructionSet set) {
        const loops::HeadShape shape{1, kHeads, kRows.count, kRows.width, 0, kRows.width, kRows.width * kHeads};
        loops::rotate_pairs<T>(shape, o.x.data(), o.g.data(), o.weight.data(), T(-1), y, set);
      });
}

template <class T>
void test_cross_entropy(SelfTestComparer& comparer) {
  test<T>(
      comparer, "cross-entropy backward", kCount,
      [](auto& o, T* out) {
        cross_entropy_backward_oracle<T>(kRows, o.g.data(), o.x.data(), o.weight.data(), kTargets, out);
      },
      [](auto& o, T* out, InstructionSet set) {
        loops::cross_entropy_backward<T>(kRows, o.g.data(), o.x.data(), o.weight.data(), kTargets, out, set);
      });
}

constexpr loops::Rows kLongRows{1, kCount};  // of more than one leaf
template <class T>
void test_softmax(SelfTestComparer& comparer) {
  test<T>(
      comparer, "softmax", kCount, [](auto& o, T* out) { softmax_oracle<T>(kLongRows, o.x.data(), out); },
      [](auto& o, T* out, InstructionSet set) { loops::softmax<T>(kLongRows, o.x.data(), out, set); });
  test<T>(
      comparer, "log-softmax", kCount, [](auto& o, T* out) { log_softmax_oracle<T>(kLongRows, o.x.data(), out); },
      [](auto& o, T* out, InstructionSet set) { loops::log_softmax<T>(kLongRows, o.x.data(), out, set); });
  test<T>(
      comparer, "softmax backward", kCount,
      [](auto& o, T* out) { softmax_backward_oracle<T>(kLongRows, o.g.data(), o.x.data(), out); },
      [](auto& o, T* out, InstructionSet set) {
        loops::softmax_backward<T>(kLongRows, o.g.data(), o.x.data(), out, set);
      });
  test<T>(
      comparer, "log-softmax backward", kCount,
      [](auto& o, T* out) { log_softmax_backward_oracle<T>(kLongRows, o.g.data(), o.x.data(), out); },
      [](auto& o, T* out, InstructionSet set) {
        loops::log_softmax_backward<T>(kLongRows, o.g.data(), o.x.data(), out, set);
      });
}

/// The results are the new parameters, means and squares.
template <class T>
void test_adamw(SelfTestComparer& comparer) {
  const auto start = [](auto& o, T* out) {
    std::copy_n(o.x.data(), kCount, out);
    std::copy_n(o.weight.data(), kCount, out + kCount);
    std::copy_n(o.positive.data(), kCount, out + 2 * kCount);
  };
  test<T>(
      comparer, "AdamW", 3 * kCount,
      [&](auto& o, T* out) {
        start(o, out);
        adamw_oracle<T>(kCount, out, o.g.data(), out + kCount, out + 2 * kCount, kStep<T>);
      },
      [&](auto& o, T* out, InstructionSet set) {
        start(o, out);
        loops::adamw<T>(kCount, out, o.g.data(), out + kCount, out + 2 * kCount, kStep<T>, set);
      });
}

}  // namespace

void test_rows(SelfTestComparer& comparer) {
  test_norm<float>(comparer);
  test_gates<float>(comparer);
  test_rotation<float>(comparer, "rotary embedding");
  test_rotation<double>(comparer, "rotary embedding in float64");
  test_cross_entropy<float>(comparer);
  test_softmax<float>(comparer);
  test_adamw<float>(comparer);
}

}  // namespace lockstep::kernels
