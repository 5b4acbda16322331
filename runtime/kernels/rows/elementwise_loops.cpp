#include "runtime/kernels/rows/elementwise_loops.h"

#include "core/elementary/elementary.h"
#include "runtime/kernels/simd/best_instruction_set.h"

namespace lockstep::kernels::loops {
namespace {

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

template <class T, template <class> class F>
struct Map {
  LOCKSTEP_PORTABLE static void run(int64_t count, const T* x, T* __restrict out) {
    for (int64_t i = 0; i < count; ++i) out[i] = F<T>::of(x[i]);
  }
};
template <class T, template <class> class F>
struct MapPairs {
  LOCKSTEP_PORTABLE static void run(int64_t count, const T* g, const T* x, T* __restrict out) {
    for (int64_t i = 0; i < count; ++i) out[i] = F<T>::of(g[i], x[i]);
  }
};

}  // namespace

template <class T>
void apply(Function function, int64_t count, const T* x, T* out, InstructionSet set) {
  switch (function) {
    case Function::kExp:
      return on_instruction_set<Map<T, Exp>>(set, count, x, out);
    case Function::kLog:
      return on_instruction_set<Map<T, Log>>(set, count, x, out);
    case Function::kSqrt:
      return on_instruction_set<Map<T, Sqrt>>(set, count, x, out);
    case Function::kErf:
      return on_instruction_set<Map<T, Erf>>(set, count, x, out);
    case Function::kTanh:
      return on_instruction_set<Map<T, Tanh>>(set, count, x, out);
    case Function::kSin:
      return on_instruction_set<Map<T, Sin>>(set, count, x, out);
    case Function::kCos:
      return on_instruction_set<Map<T, Cos>>(set, count, x, out);
    case Function::kSigmoid:
      return on_instruction_set<Map<T, Sigmoid>>(set, count, x, out);
    case Function::kSilu:
      return on_instruction_set<Map<T, Silu>>(set, count, x, out);
    case Function::kGelu:
      return on_instruction_set<Map<T, Gelu>>(set, count, x, out);
    case Function::kGeluByTanh:
      return on_instruction_set<Map<T, GeluByTanh>>(set, count, x, out);
  }
}

template <class T>
void apply(Gradient gradient, int64_t count, const T* g, const T* x, T* out, InstructionSet set) {
  switch (gradient) {
    case Gradient::kSilu:
      return on_instruction_set<MapPairs<T, SiluGradient>>(set, count, g, x, out);
    case Gradient::kGelu:
      return on_instruction_set<MapPairs<T, GeluGradient>>(set, count, g, x, out);
    case Gradient::kGeluByTanh:
      return on_instruction_set<MapPairs<T, GeluByTanhGradient>>(set, count, g, x, out);
  }
}

#define LOCKSTEP_INSTANTIATE(T)                                         \
  template void apply(Function, int64_t, const T*, T*, InstructionSet); \
  template void apply(Gradient, int64_t, const T*, const T*, T*, InstructionSet)
LOCKSTEP_INSTANTIATE(float);
LOCKSTEP_INSTANTIATE(double);
#undef LOCKSTEP_INSTANTIATE

}  // namespace lockstep::kernels::loops
