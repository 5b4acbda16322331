#include "runtime/kernels/sums/integer_sum_loops.h"

#include "runtime/kernels/simd/best_instruction_set.h"

namespace lockstep::kernels::loops {
namespace {

/// Adding 1.5 * 2^52 rounds a double below 2^51 to the nearest integer.
constexpr double kRound = 0x1.8p52;

/// Without their sign, floating numbers order as their bits do, and a NaN is above all numbers. Several vectors a turn:
/// a loop of one takes twice as long where the linker happens to put it across two lines of instructions.
template <class T, class Bits>
struct AbsoluteMaximum {
  LOCKSTEP_PORTABLE static void run(int64_t count, const T* __restrict x, T* out) {
    constexpr int64_t kBlock = 256 / sizeof(T);
    Bits block[kBlock] = {}, maximum = 0;
    int64_t i = 0;
    for (; i + kBlock <= count; i += kBlock)
      for (int64_t j = 0; j < kBlock; ++j) block[j] = larger(block[j], magnitude(x[i + j]));
    for (; i < count; ++i) maximum = larger(maximum, magnitude(x[i]));
    for (const Bits each : block) maximum = larger(maximum, each);
    *out = portable::bits<T>(maximum);
  }

 private:
  LOCKSTEP_PORTABLE static Bits magnitude(T x) { return portable::bits<Bits>(x) & (static_cast<Bits>(~Bits{0}) >> 1); }
  LOCKSTEP_PORTABLE static Bits larger(Bits a, Bits b) { return b > a ? b : a; }
};

template <class T>
struct FixedPointSum {
  LOCKSTEP_PORTABLE static void run(int64_t count, const T* __restrict x, FixedPoint* out) {
    FixedPoint result;
    for (int64_t i = 0; i < count; ++i) {
      const auto value = static_cast<double>(x[i]);
      const bool fits = value > -FixedPoint::kLimit && value < FixedPoint::kLimit;
      const double scaled = (fits ? value : 0.0) * (int64_t{1} << FixedPoint::kBits);
      result.sum += portable::bits<int64_t>(scaled + kRound) - portable::bits<int64_t>(kRound);
      result.refused += fits ? 0 : 1;
    }
    *out = result;
  }
};

}  // namespace

template <class T>
FixedPoint fixed_point_sum(int64_t count, const T* x) {
  FixedPoint result;
  on_best_instruction_set<FixedPointSum<T>>(count, x, &result);
  return result;
}

template <>
float absolute_maximum(int64_t count, const float* x) {
  float result = 0;
  on_best_instruction_set<AbsoluteMaximum<float, uint32_t>>(count, x, &result);
  return result;
}

template <>
double absolute_maximum(int64_t count, const double* x) {
  double result = 0;
  on_best_instruction_set<AbsoluteMaximum<double, uint64_t>>(count, x, &result);
  return result;
}

template FixedPoint fixed_point_sum(int64_t, const float*);
template FixedPoint fixed_point_sum(int64_t, const double*);

}  // namespace lockstep::kernels::loops
