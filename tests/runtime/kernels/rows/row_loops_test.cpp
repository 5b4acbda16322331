// The loops of norms, gates, softmaxes, losses and the optimizer give their oracles' bits; broken on purpose they do
// not.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <numeric>

#include "tests/support/cases/row_cases.h"
#include "tests/support/instruction_sets.h"
#include "tests/support/mutants.h"

namespace lockstep::testing {
namespace {

using Plain = PlainRows<float>;
using Case = RowCase<float>;

template <class T>
void loops_equal_oracles(InstructionSet set) {
  const RowLoops<T> loops{set};
  using Oracle = PlainRows<T>;
  const auto expect = [&](auto loop, auto oracle) {
    rows_equal_oracle<T>([&](const RowCase<T>& c, T* out) { (loops.*loop)(c, out); }, oracle);
  };
  expect(&RowLoops<T>::norm, Oracle::norm);
  expect(&RowLoops<T>::norm_backward, Oracle::norm_backward);
  expect(&RowLoops<T>::swiglu, Oracle::swiglu);
  expect(&RowLoops<T>::swiglu_backward, Oracle::swiglu_backward);
  expect(&RowLoops<T>::cross_entropy, Oracle::cross_entropy);
  expect(&RowLoops<T>::softmax, Oracle::softmax);
  expect(&RowLoops<T>::log_softmax, Oracle::log_softmax);
  expect(&RowLoops<T>::softmax_backward, Oracle::softmax_backward);
  expect(&RowLoops<T>::log_softmax_backward, Oracle::log_softmax_backward);
  expect(&RowLoops<T>::rotation, Oracle::rotation);
  expect(&RowLoops<T>::adamw, Oracle::adamw);
}

class RowLoopsOfSet : public OnInstructionSet {};
INSTANTIATE_TEST_SUITE_P(Sets, RowLoopsOfSet, every_set(), set_name);

TEST_P(RowLoopsOfSet, GiveTheOraclesBitsInSinglePrecision) {
  expect_holds([] { loops_equal_oracles<float>(GetParam()); });
}
TEST_P(RowLoopsOfSet, GiveTheOraclesBitsInDoublePrecision) {
  expect_holds([] { loops_equal_oracles<double>(GetParam()); });
}

// Faults.

template <class Square>
void norm_with(const Case& c, float* y, const Square& squares) {
  for (int64_t r = 0; r < c.rows.count; ++r) {
    const float* x = c.x.data() + r * c.rows.width;
    const float sum = squares(c.rows.width, x);
    y[c.count() + r] = 1.0f / std::sqrt(sum / static_cast<float>(c.rows.width) + 1e-5f);
    for (int64_t i = 0; i < c.rows.width; ++i) {
      const float normed = x[i] * y[c.count() + r];
      y[r * c.rows.width + i] = normed * c.weight.data()[i];
    }
  }
}
void norm_by_a_chain(const Case& c, float* y) {
  norm_with(c, y, [](int64_t width, const float* x) {
    float sum = 0;
    for (int64_t i = 0; i < width; ++i) sum += x[i] * x[i];
    return sum;
  });
}
/// Lanes of another width: a kernel that follows its vectors.
void norm_by_eight_lanes(const Case& c, float* y) {
  norm_with(c, y, [](int64_t width, const float* x) {
    float lanes[8] = {}, sum = 0;
    for (int64_t i = 0; i < width; ++i) lanes[i % 8] += x[i] * x[i];
    for (const float lane : lanes) sum += lane;
    return sum;
  });
}
/// Lanes that are added from the first to the last.
void norm_with_lanes_in_a_chain(const Case& c, float* y) {
  norm_with(c, y, [](int64_t width, const float* x) {
    float lanes[16] = {}, sum = 0;
    for (int64_t i = 0; i < width; ++i) lanes[i % 16] += x[i] * x[i];
    for (const float lane : lanes) sum += lane;
    return sum;
  });
}
/// What fills no group of 16 is a chain of its own.
void norm_with_rest_apart(const Case& c, float* y) {
  norm_with(c, y, [](int64_t width, const float* x) {
    const int64_t whole = width / 16 * 16;
    float rest = 0;
    for (int64_t i = whole; i < width; ++i) rest += x[i] * x[i];
    const auto add = [&](float sum, int64_t i) { return sum + x[i] * x[i]; };
    return kernels::lanes_oracle<float>(0, whole, add) + rest;
  });
}
void norm_with_fma(const Case& c, float* y) {
  norm_with(c, y, [](int64_t width, const float* x) {
    return kernels::lanes_oracle<float>(0, width, [&](float sum, int64_t i) { return std::fma(x[i], x[i], sum); });
  });
}
/// The last elements are multiplied by weight first.
void norm_with_another_tail(const Case& c, float* y) {
  Plain::norm(c, y);
  for (int64_t r = 0; r < c.rows.count; ++r)
    for (int64_t i = c.rows.width / 16 * 16; i < c.rows.width; ++i) {
      const float weighted = c.x.data()[r * c.rows.width + i] * c.weight.data()[i];
      y[r * c.rows.width + i] = weighted * y[c.count() + r];
    }
}
void norm_backward_in_double(const Case& c, float* dx) {
  Plain::norm_backward(c, dx);
  for (int64_t i = 0; i < c.rows.width; ++i) {
    double sum = 7;
    for (int64_t r = 0; r < c.rows.count; ++r)
      sum += static_cast<double>(c.g.data()[r * c.rows.width + i] * c.x.data()[r * c.rows.width + i] *
                                 c.positive.data()[r]);
    dx[c.count() + i] = static_cast<float>(sum);
  }
}

template <class Gate>
void gated(const Case& c, float* out, const Gate& gate) {
  for (int64_t r = 0; r < c.rows.count; ++r)
    for (int64_t i = 0; i < c.rows.width; ++i)
      out[r * c.rows.width + i] =
          gate(c.x.data()[2 * r * c.rows.width + i], c.x.data()[(2 * r + 1) * c.rows.width + i]);
}
void swiglu_by_reciprocal(const Case& c, float* out) {
  gated(c, out, [](float gate, float up) {
    const float s = 1.0f / (1.0f + elementary::normal_exp(-gate));
    return gate * s * up;
  });
}
void swiglu_of_libm(const Case& c, float* out) {
  gated(c, out, [](float gate, float up) { return gate / (1.0f + std::exp(-gate)) * up; });
}
void swiglu_exchanged(const Case& c, float* out) {
  gated(c, out, [](float gate, float up) { return up / (1.0f + elementary::normal_exp(-up)) * gate; });
}
void swiglu_backward_reassociated(const Case& c, float* out) {
  Plain::swiglu_backward(c, out);
  for (int64_t r = 0; r < c.rows.count; ++r)
    for (int64_t i = 0; i < c.rows.width; ++i) {
      const int64_t at = 2 * r * c.rows.width + i;
      const float gate = c.x.data()[at], s = 1.0f / (1.0f + elementary::normal_exp(-gate));
      const float gradient = c.g.data()[r * c.rows.width + i] * gate;
      out[at + c.rows.width] = gradient * s;
    }
}
void cross_entropy_of_another_class(const Case& c, float* out) {
  auto other = c;
  for (auto& target : other.targets) target = target < 0 ? 0 : target;
  Plain::cross_entropy(other, out);
}
void cross_entropy_with_fma(const Case& c, float* out) {
  Plain::cross_entropy(c, out);
  for (int64_t r = 0; r < c.rows.count; ++r)
    if (c.targets[static_cast<size_t>(r)] >= 0) {
      const int64_t at = r * c.rows.width + c.targets[static_cast<size_t>(r)];
      const float g = c.g.data()[r];
      out[at] = std::fma(elementary::normal_exp(c.x.data()[at] - c.weight.data()[r]), g, -g);
    }
}
template <class Sum>
void softmax_with(const Case& c, float* out, const Sum& sum) {
  std::vector<float> e(static_cast<size_t>(c.rows.width));
  for (int64_t r = 0; r < c.rows.count; ++r) {
    const float* x = c.x.data() + r * c.rows.width;
    const float shift = kernels::row_maximum_oracle(c.rows.width, x);
    for (size_t i = 0; i < e.size(); ++i) e[i] = elementary::normal_exp(x[i] - shift);
    const float total = sum(e);
    for (const float one : e) *out++ = one / total;
  }
}
void softmax_by_a_chain(const Case& c, float* out) {
  softmax_with(c, out, [](const auto& e) { return std::accumulate(e.begin(), e.end(), 0.0f); });
}
void softmax_by_lanes(const Case& c, float* out) {
  softmax_with(c, out, [](const auto& e) {
    return kernels::lanes_oracle<float>(0, static_cast<int64_t>(e.size()),
                                        [&](float sum, int64_t i) { return sum + e[size_t(i)]; });
  });
}
void softmax_by_a_reciprocal(const Case& c, float* out) {
  for (int64_t r = 0; r < c.rows.count; ++r, out += c.rows.width) {
    const float* x = c.x.data() + r * c.rows.width;
    const float shift = kernels::row_maximum_oracle(c.rows.width, x);
    const auto term = [&](int64_t i) { return elementary::normal_exp(x[i] - shift); };
    const float reciprocal = 1.0f / kernels::row_sum_oracle<float>(c.rows.width, term);
    for (int64_t i = 0; i < c.rows.width; ++i) out[i] = term(i) * reciprocal;
  }
}
/// The logarithm of the sum is taken off before the maximum is.
void log_softmax_reassociated(const Case& c, float* out) {
  for (int64_t r = 0; r < c.rows.count; ++r, out += c.rows.width) {
    const float* x = c.x.data() + r * c.rows.width;
    const float shift = kernels::row_maximum_oracle(c.rows.width, x);
    const float sum =
        kernels::row_sum_oracle<float>(c.rows.width, [&](int64_t i) { return elementary::normal_exp(x[i] - shift); });
    for (int64_t i = 0; i < c.rows.width; ++i) out[i] = x[i] - (shift + elementary::log(sum));
  }
}
void softmax_backward_fused(const Case& c, float* out) {
  for (int64_t r = 0; r < c.rows.count; ++r, out += c.rows.width) {
    const float *g = c.g.data() + r * c.rows.width, *y = c.x.data() + r * c.rows.width;
    const float sum = kernels::row_sum_oracle<float>(c.rows.width, [&](int64_t i) { return g[i] * y[i]; });
    for (int64_t i = 0; i < c.rows.width; ++i) out[i] = std::fma(-y[i], sum, g[i] * y[i]);
  }
}
void log_softmax_backward_of_libm(const Case& c, float* out) {
  for (int64_t r = 0; r < c.rows.count; ++r, out += c.rows.width) {
    const float *g = c.g.data() + r * c.rows.width, *y = c.x.data() + r * c.rows.width;
    const float sum = kernels::row_sum_oracle<float>(c.rows.width, [&](int64_t i) { return g[i]; });
    for (int64_t i = 0; i < c.rows.width; ++i) out[i] = g[i] - std::exp(y[i]) * sum;
  }
}
void rotation_with_fma(const Case& c, float* y) {
  for (int64_t i = 0; i < c.count(); i += 2) {
    const float even = c.x.data()[i], odd = c.x.data()[i + 1];
    const float cosine = c.g.data()[i / 2], sine = c.weight.data()[i / 2];
    y[i] = std::fma(even, cosine, -(odd * sine));
    y[i + 1] = std::fma(even, sine, odd * cosine);
  }
}
void rotation_of_halves(const Case& c, float* y) {
  const int64_t half = c.rows.width / 2;
  for (int64_t r = 0; r < c.rows.count; ++r)
    for (int64_t i = 0; i < half; ++i) {
      const float* x = c.x.data() + r * c.rows.width;
      const float cosine = c.g.data()[r * half + i], sine = c.weight.data()[r * half + i];
      y[r * c.rows.width + i] = x[i] * cosine - x[i + half] * sine;
      y[r * c.rows.width + i + half] = x[i] * sine + x[i + half] * cosine;
    }
}
template <auto kChange>
void adamw_with(const Case& c, float* p) {
  auto step = kAdamwStep<float>;
  start_of_step(c, p);
  kChange(c, p, step);
}
const auto kAdamwByReciprocal = [](const Case& c, float* p, auto& step) {
  const auto before = std::vector<float>(p, p + c.count());
  kernels::adamw_oracle<float>(c.count(), p, c.g.data(), p + c.count(), p + 2 * c.count(), step);
  for (int64_t i = 0; i < c.count(); ++i) {
    const float root = std::sqrt(p[2 * c.count() + i]) * (1.0f / step.root_correction);
    const float decayed = before[static_cast<size_t>(i)] * step.decay;
    p[i] = decayed - step.step_size * p[c.count() + i] / (root + step.epsilon);
  }
};
const auto kAdamwScaledLater = [](const Case& c, float* p, auto& step) {
  step.rest1 *= step.gradient_scale, step.rest2 *= step.gradient_scale * step.gradient_scale, step.gradient_scale = 1;
  kernels::adamw_oracle<float>(c.count(), p, c.g.data(), p + c.count(), p + 2 * c.count(), step);
};
const auto kAdamwEpsilonInTheRoot = [](const Case& c, float* p, auto& step) {
  for (int64_t i = 0; i < c.count(); ++i) p[2 * c.count() + i] += step.epsilon;
  step.epsilon = 0;
  kernels::adamw_oracle<float>(c.count(), p, c.g.data(), p + c.count(), p + 2 * c.count(), step);
};

using Kernel = void (*)(const Case&, float*);
struct RowMutant {
  const char* fault;
  Kernel kernel, oracle;
};
constexpr RowMutant kMutants[] = {
    {"a norm's squares as a chain", norm_by_a_chain, Plain::norm},
    {"a norm's squares in 8 lanes", norm_by_eight_lanes, Plain::norm},
    {"a norm's lanes in a chain", norm_with_lanes_in_a_chain, Plain::norm},
    {"a norm's rest apart", norm_with_rest_apart, Plain::norm},
    {"a norm's squares fused", norm_with_fma, Plain::norm},
    {"a norm with another tail", norm_with_another_tail, Plain::norm},
    {"a norm's weight gradient in double", norm_backward_in_double, Plain::norm_backward},
    {"SwiGLU by a reciprocal", swiglu_by_reciprocal, Plain::swiglu},
    {"SwiGLU with libm", swiglu_of_libm, Plain::swiglu},
    {"SwiGLU of gate and up exchanged", swiglu_exchanged, Plain::swiglu},
    {"SwiGLU backward reassociated", swiglu_backward_reassociated, Plain::swiglu_backward},
    {"cross-entropy of another class", cross_entropy_of_another_class, Plain::cross_entropy},
    {"cross-entropy fused", cross_entropy_with_fma, Plain::cross_entropy},
    {"softmax by a chain", softmax_by_a_chain, Plain::softmax},
    {"softmax by lanes", softmax_by_lanes, Plain::softmax},
    {"softmax by a reciprocal", softmax_by_a_reciprocal, Plain::softmax},
    {"log-softmax reassociated", log_softmax_reassociated, Plain::log_softmax},
    {"softmax backward fused", softmax_backward_fused, Plain::softmax_backward},
    {"log-softmax backward with libm", log_softmax_backward_of_libm, Plain::log_softmax_backward},
    {"a rotation fused", rotation_with_fma, Plain::rotation},
    {"a rotation of halves", rotation_of_halves, Plain::rotation},
    {"AdamW by a reciprocal", adamw_with<kAdamwByReciprocal>, Plain::adamw},
    {"AdamW's gradient scaled later", adamw_with<kAdamwScaledLater>, Plain::adamw},
    {"AdamW's epsilon in the root", adamw_with<kAdamwEpsilonInTheRoot>, Plain::adamw},
};

TEST(RowMutants, AreNoticed) {
  for (const auto& mutant : kMutants)
    expect_noticed(mutant.fault, [&] { rows_equal_oracle<float>(mutant.kernel, mutant.oracle); });
}

}  // namespace
}  // namespace lockstep::testing
