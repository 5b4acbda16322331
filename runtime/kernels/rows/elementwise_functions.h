#pragma once
#include "core/elementary/elementary.h"
#include "runtime/kernels/rows/elementwise_loops.h"

/// What elementwise_loops.h does to each element, for CPUs and GPUs: `F::of(x)`, and of gradients `F::of(g, x)`.
namespace lockstep::kernels::loops {

namespace functions {

constexpr double kDensityAtZero = 0x1.9884533d43651p-2;

template <class T>
LOCKSTEP_PORTABLE T logistic(T x) {
  return T(1) / (elementary::normal_exp(-x) + T(1));
}
/// max(x, 0) less what lies beyond |x|.
template <class T>
LOCKSTEP_PORTABLE T gelu(T x) {
  constexpr T kEnd = elementary::NormalTail<T>::kEnd;
  const T y = portable::absolute(x), bounded = y > kEnd ? kEnd : y;  // times 0 is 0
  return (x < T(0) ? T(0) : x) - bounded * elementary::normal_tail(y).beyond;
}

/// The argument of the tanh by which a normal distribution is approximated.
template <class T>
struct TanhArgument {
  static constexpr T kSlope = static_cast<T>(2 * kDensityAtZero), kCubic = T(0.044715), kEnd = 10;
  T x, square;

  LOCKSTEP_PORTABLE explicit TanhArgument(T any) : x(any > kEnd ? kEnd : any < -kEnd ? -kEnd : any), square(x * x) {}
  LOCKSTEP_PORTABLE T value() const { return kSlope * (x + kCubic * (square * x)); }
  LOCKSTEP_PORTABLE T derivative() const { return kSlope * (T(1) + T(3) * kCubic * square); }
};
template <class T>
LOCKSTEP_PORTABLE T gelu_by_tanh(T x) {
  return T(0.5) * x * (T(1) + elementary::tanh(TanhArgument<T>(x).value()));
}

#define LOCKSTEP_FUNCTION(Name, expression)                   \
  template <class T>                                          \
  struct Name {                                               \
    LOCKSTEP_PORTABLE static T of(T x) { return expression; } \
  }
LOCKSTEP_FUNCTION(Exp, elementary::exp(x));
LOCKSTEP_FUNCTION(Log, elementary::log(x));
LOCKSTEP_FUNCTION(Sqrt, portable::sqrt(x));
LOCKSTEP_FUNCTION(Erf, elementary::erf(x));
LOCKSTEP_FUNCTION(Tanh, elementary::tanh(x));
LOCKSTEP_FUNCTION(Sin, elementary::sin(x));
LOCKSTEP_FUNCTION(Cos, elementary::cos(x));
LOCKSTEP_FUNCTION(Sigmoid, logistic(x));
LOCKSTEP_FUNCTION(Silu, x* logistic(x));
LOCKSTEP_FUNCTION(Gelu, gelu(x));
LOCKSTEP_FUNCTION(GeluByTanh, gelu_by_tanh(x));
#undef LOCKSTEP_FUNCTION

template <class T>
struct SiluGradient {
  LOCKSTEP_PORTABLE static T of(T g, T x) {
    const T s = logistic(x);
    return (g * s) * (x * (T(1) - s) + T(1));
  }
};
template <class T>
struct GeluGradient {
  LOCKSTEP_PORTABLE static T of(T g, T x) {
    const auto tail = elementary::normal_tail(portable::absolute(x));
    const T cdf = x < T(0) ? tail.beyond : T(1) - tail.beyond, pdf = tail.bell * static_cast<T>(kDensityAtZero);
    return g * (cdf + x * pdf);
  }
};

template <class T>
struct GeluByTanhGradient {
  LOCKSTEP_PORTABLE static T of(T g, T x) {
    const TanhArgument<T> argument(x);
    const T t = elementary::tanh(argument.value());
    return g * (T(0.5) * (T(1) + t) + T(0.5) * x * (T(1) - t * t) * argument.derivative());
  }
};

}  // namespace functions

/// run(F) with that of a function.
template <class T, class Run>
void with_function(Function function, const Run& run) {
  switch (function) {
    case Function::kExp:
      return run(functions::Exp<T>{});
    case Function::kLog:
      return run(functions::Log<T>{});
    case Function::kSqrt:
      return run(functions::Sqrt<T>{});
    case Function::kErf:
      return run(functions::Erf<T>{});
    case Function::kTanh:
      return run(functions::Tanh<T>{});
    case Function::kSin:
      return run(functions::Sin<T>{});
    case Function::kCos:
      return run(functions::Cos<T>{});
    case Function::kSigmoid:
      return run(functions::Sigmoid<T>{});
    case Function::kSilu:
      return run(functions::Silu<T>{});
    case Function::kGelu:
      return run(functions::Gelu<T>{});
    case Function::kGeluByTanh:
      return run(functions::GeluByTanh<T>{});
  }
}
template <class T, class Run>
void with_gradient(Gradient gradient, const Run& run) {
  switch (gradient) {
    case Gradient::kSilu:
      return run(functions::SiluGradient<T>{});
    case Gradient::kGelu:
      return run(functions::GeluGradient<T>{});
    case Gradient::kGeluByTanh:
      return run(functions::GeluByTanhGradient<T>{});
  }
}

}  // namespace lockstep::kernels::loops
