#pragma once
#include "runtime/kernels/rows/row_oracle.h"
#include "runtime/kernels/rows/softmax_oracle.h"
#include "tests/support/cases/sum_cases.h"

/// Random rows for comparing the loops of norms, gates, softmaxes, losses and the optimizer with their oracles.
namespace lockstep::testing {

/// Operands of any of them; each reads its own.
template <class T>
struct RowCase {
  static RowCase any() {
    const auto width = rc::gen::weightedOneOf<int64_t>(
        {{2, rc::gen::inRange<int64_t>(1, 40)}, {1, rc::gen::inRange<int64_t>(40, 300)}});
    return RowCase({*rc::gen::inRange<int64_t>(0, 4), 2 * *width},
                   *rc::gen::element(Numbers::kNormal, Numbers::kTiny, Numbers::kSpecial, Numbers::kMiddle),
                   *rc::gen::arbitrary<uint32_t>());
  }

  RowCase(kernels::loops::Rows sizes, Numbers kind, uint32_t seed)
      : rows(sizes),
        random(seed),
        x(count() * 2, kind, random),
        g(count(), kind, random),
        weight(count() + rows.width, kind, random),
        positive(count(), kind, random) {
    for (int64_t i = 0; i < count(); ++i) positive.data()[i] = std::abs(positive.data()[i]);
    for (int64_t r = 0; r < rows.count; ++r)
      targets.push_back(static_cast<int64_t>(random() % static_cast<size_t>(rows.width + 1)) - 1);
  }

  int64_t count() const { return rows.count * rows.width; }

  /// What a kernel(case, out) writes, and one element behind it that it must not.
  template <class Kernel>
  std::vector<T> run(const Kernel& kernel) const {
    const size_t shift = x.shift;
    std::vector<T> memory(shift + static_cast<size_t>(3 * count() + rows.width + rows.count) + 1, T(7));
    kernel(*this, memory.data() + shift);
    return memory;
  }

  kernels::loops::Rows rows;
  std::mt19937 random;
  AnywhereInMemory<T> x, g, weight, positive;
  std::vector<int64_t> targets;
};

/// Property: the kernel gives the oracle's bits, wherever its rows lie.
template <class T, class Kernel, class Oracle>
void rows_equal_oracle(const Kernel& kernel, const Oracle& oracle) {
  const auto rows = RowCase<T>::any();
  RC_ASSERT(same_numbers(rows.run(kernel), rows.run(oracle)));
}

/// Parameters, means and squares of an AdamW step, one after the other.
template <class T>
void start_of_step(const RowCase<T>& c, T* out) {
  std::copy_n(c.x.data(), c.count(), out);
  std::copy_n(c.weight.data(), c.count(), out + c.count());
  std::copy_n(c.positive.data(), c.count(), out + 2 * c.count());
}
template <class T>
constexpr kernels::loops::AdamwStep<T> kAdamwStep{T(0.7),  T(0.99), T(0.9), T(0.1), T(0.95),
                                                  T(0.05), T(1e-3), T(0.3), T(1e-8)};

// The loops of loops.h and their oracles, on the operands of a case.

template <class T>
struct PlainRows {
  using Case = RowCase<T>;
  static void norm(const Case& c, T* y) {
    kernels::rms_norm_oracle<T>(c.rows, c.x.data(), c.weight.data(), y, y + c.count(), T(1e-5));
  }
  static void norm_backward(const Case& c, T* dx) {
    kernels::rms_norm_backward_oracle<T>(c.rows, c.g.data(), c.x.data(), c.positive.data(), c.weight.data(), dx,
                                         dx + c.count());
  }
  static void swiglu(const Case& c, T* out) { kernels::swiglu_oracle<T>(c.rows, c.x.data(), out); }
  static void swiglu_backward(const Case& c, T* out) {
    kernels::swiglu_backward_oracle<T>(c.rows, c.g.data(), c.x.data(), out);
  }
  static void cross_entropy(const Case& c, T* out) {
    kernels::cross_entropy_backward_oracle<T>(c.rows, c.g.data(), c.x.data(), c.weight.data(), c.targets.data(), out);
  }
  static void softmax(const Case& c, T* out) { kernels::softmax_oracle<T>(c.rows, c.x.data(), out); }
  static void log_softmax(const Case& c, T* out) { kernels::log_softmax_oracle<T>(c.rows, c.x.data(), out); }
  static void softmax_backward(const Case& c, T* out) {
    kernels::softmax_backward_oracle<T>(c.rows, c.g.data(), c.x.data(), out);
  }
  static void log_softmax_backward(const Case& c, T* out) {
    kernels::log_softmax_backward_oracle<T>(c.rows, c.g.data(), c.x.data(), out);
  }
  static void rotation(const Case& c, T* y) {
    kernels::rotate_pairs_oracle<T>(c.rows.count, 1, c.rows.width, c.x.data(), c.g.data(), c.weight.data(), T(1), y);
  }
  static void adamw(const Case& c, T* p) {
    start_of_step(c, p);
    kernels::adamw_oracle<T>(c.count(), p, c.g.data(), p + c.count(), p + 2 * c.count(), kAdamwStep<T>);
  }
};

template <class T>
struct RowLoops {
  using Case = RowCase<T>;
  InstructionSet set;

  void norm(const Case& c, T* y) const {
    kernels::loops::rms_norm<T>(c.rows, c.x.data(), c.weight.data(), y, y + c.count(), T(1e-5), set);
  }
  void norm_backward(const Case& c, T* dx) const {
    kernels::loops::rms_norm_backward<T>(c.rows, c.g.data(), c.x.data(), c.positive.data(), c.weight.data(), dx,
                                         dx + c.count(), set);
  }
  void swiglu(const Case& c, T* out) const { kernels::loops::swiglu<T>(c.rows, c.x.data(), out, set); }
  void swiglu_backward(const Case& c, T* out) const {
    kernels::loops::swiglu_backward<T>(c.rows, c.g.data(), c.x.data(), out, set);
  }
  void cross_entropy(const Case& c, T* out) const {
    kernels::loops::cross_entropy_backward<T>(c.rows, c.g.data(), c.x.data(), c.weight.data(), c.targets.data(), out,
                                              set);
  }
  void softmax(const Case& c, T* out) const { kernels::loops::softmax<T>(c.rows, c.x.data(), out, set); }
  void log_softmax(const Case& c, T* out) const { kernels::loops::log_softmax<T>(c.rows, c.x.data(), out, set); }
  void softmax_backward(const Case& c, T* out) const {
    kernels::loops::softmax_backward<T>(c.rows, c.g.data(), c.x.data(), out, set);
  }
  void log_softmax_backward(const Case& c, T* out) const {
    kernels::loops::log_softmax_backward<T>(c.rows, c.g.data(), c.x.data(), out, set);
  }
  void rotation(const Case& c, T* y) const {
    const kernels::loops::HeadShape shape{1, 1, c.rows.count, c.rows.width, 0, 0, c.rows.width};
    kernels::loops::rotate_pairs<T>(shape, c.x.data(), c.g.data(), c.weight.data(), T(1), y, set);
  }
  void adamw(const Case& c, T* p) const {
    start_of_step(c, p);
    kernels::loops::adamw<T>(c.count(), p, c.g.data(), p + c.count(), p + 2 * c.count(), kAdamwStep<T>, set);
  }
};

}  // namespace lockstep::testing
