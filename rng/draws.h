#pragma once
#include "core/elementary/elementary.h"
#include "core/elementary/half.h"
#include "core/elementary/portable.h"
#include "rng/normal_quantile.h"
#include "rng/philox.h"

/// From one block of words to kPerBlock consecutive values; shared by the CPU and CUDA kernels. docs/rng.md explains
/// each. Element e of a stream is value e % kPerBlock of the block with index e / kPerBlock.
namespace lockstep::rng {

template <class T>
LOCKSTEP_PORTABLE T clamp(T x, T least, T greatest) {
  x = x < least ? least : x;
  return x > greatest ? greatest : x;
}

/// (w >> 8) 2^-24, in [0, 1).
LOCKSTEP_PORTABLE float unit_interval(uint32_t w) {
  return static_cast<float>(static_cast<int32_t>(w >> 8)) * 0x1p-24f;
}
/// (w >> 11) 2^-53, in [0, 1).
LOCKSTEP_PORTABLE double unit_interval(uint64_t w) {
  return static_cast<double>(static_cast<int64_t>(w >> 11)) * 0x1p-53;
}

/// Box and Muller: radius from the first word, angle from the second.
LOCKSTEP_PORTABLE elementary::SinCos<float> normal_pair(uint32_t w0, uint32_t w1) {
  const float u = portable::fma(static_cast<float>(static_cast<int32_t>(w0 >> 1)), 0x1p-31f, 0x1p-32f);
  const float radius = portable::sqrt(-2.0f * elementary::log_normal(u));
  const auto angle = elementary::sin_cos_of_turns(w1);
  return {radius * angle.sin, radius * angle.cos};
}
LOCKSTEP_PORTABLE elementary::SinCos<double> normal_pair(uint64_t w0, uint64_t w1) {
  const double u = portable::fma(static_cast<double>(static_cast<int64_t>(w0 >> 1)), 0x1p-63, 0x1p-64);
  const double radius = portable::sqrt(-2.0 * elementary::log_normal(u));
  const auto angle = elementary::sin_cos_of_turns(w1);
  return {radius * angle.sin, radius * angle.cos};
}

/// Values computed in single precision from one 32-bit word each (normals: two words give two), in double precision
/// from one 64-bit word each.
template <class T>
struct PerBlock;
template <>
struct PerBlock<float> {
  static constexpr int kPerBlock = 4;
  using Value = float;
};
template <>
struct PerBlock<double> {
  static constexpr int kPerBlock = 2;
  using Value = double;
};

template <class T>
struct UniformDraw : PerBlock<T> {
  T low, span, least, greatest;

  LOCKSTEP_PORTABLE T value(T u) const { return clamp(portable::fma(u, span, low), least, greatest); }
  LOCKSTEP_PORTABLE void operator()(const Words& w, float (&v)[4]) const {
    v[0] = value(unit_interval(w.word[0]));
    v[1] = value(unit_interval(w.word[1]));
    v[2] = value(unit_interval(w.word[2]));
    v[3] = value(unit_interval(w.word[3]));
  }
  LOCKSTEP_PORTABLE void operator()(const Words& w, double (&v)[2]) const {
    v[0] = value(unit_interval(w.pair(0)));
    v[1] = value(unit_interval(w.pair(1)));
  }
};

template <class T>
struct NormalDraw : PerBlock<T> {
  T mean, deviation;

  LOCKSTEP_PORTABLE void store(elementary::SinCos<T> pair, T& first, T& second) const {
    first = portable::fma(pair.cos, deviation, mean);
    second = portable::fma(pair.sin, deviation, mean);
  }
  LOCKSTEP_PORTABLE void operator()(const Words& w, float (&v)[4]) const {
    store(normal_pair(w.word[0], w.word[1]), v[0], v[1]);
    store(normal_pair(w.word[2], w.word[3]), v[2], v[3]);
  }
  LOCKSTEP_PORTABLE void operator()(const Words& w, double (&v)[2]) const {
    store(normal_pair(w.pair(0), w.pair(1)), v[0], v[1]);
  }
};

/// By inversion, in double precision throughout; `scale` is negative when the interval was mirrored to the lower half.
template <class T>
struct TruncatedNormalDraw : PerBlock<T> {
  double mean, scale, probability_low, probability_span;
  T least, greatest;

  LOCKSTEP_PORTABLE T value(double u) const {
    const double z = normal_quantile(portable::fma(u, probability_span, probability_low));
    return clamp(static_cast<T>(portable::fma(z, scale, mean)), least, greatest);
  }
  LOCKSTEP_PORTABLE static double unit(uint32_t w) { return (static_cast<double>(w) + 0.5) * 0x1p-32; }
  LOCKSTEP_PORTABLE static double unit(uint64_t w) {
    return (static_cast<double>(static_cast<int64_t>(w >> 12)) + 0.5) * 0x1p-52;
  }
  LOCKSTEP_PORTABLE void operator()(const Words& w, float (&v)[4]) const {
    v[0] = value(unit(w.word[0]));
    v[1] = value(unit(w.word[1]));
    v[2] = value(unit(w.word[2]));
    v[3] = value(unit(w.word[3]));
  }
  LOCKSTEP_PORTABLE void operator()(const Words& w, double (&v)[2]) const {
    v[0] = value(unit(w.pair(0)));
    v[1] = value(unit(w.pair(1)));
  }
};

/// `present` where the word is at most `limit`, else 0. One 32-bit word per element for every dtype.
template <class T>
struct BernoulliDraw {
  static constexpr int kPerBlock = 4;
  using Value = T;
  uint32_t limit;
  T present;

  LOCKSTEP_PORTABLE T value(uint32_t w) const { return w <= limit ? present : T{}; }
  LOCKSTEP_PORTABLE void operator()(const Words& w, T (&v)[4]) const {
    v[0] = value(w.word[0]);
    v[1] = value(w.word[1]);
    v[2] = value(w.word[2]);
    v[3] = value(w.word[3]);
  }
};

/// first + floor(w range / 2^64), one 64-bit word per element.
struct IntegersDraw {
  static constexpr int kPerBlock = 2;
  using Value = int64_t;
  uint64_t first, range;

  LOCKSTEP_PORTABLE int64_t value(uint64_t w) const {
    return static_cast<int64_t>(first + portable::multiply_high(w, range));
  }
  LOCKSTEP_PORTABLE void operator()(const Words& w, int64_t (&v)[2]) const {
    v[0] = value(w.pair(0));
    v[1] = value(w.pair(1));
  }
};

/// How a value is stored.
template <class T>
struct AsIs {
  using Stored = T;
  LOCKSTEP_PORTABLE static T store(T value) { return value; }
};
struct AsBFloat16 {
  using Stored = uint16_t;
  LOCKSTEP_PORTABLE static uint16_t store(float value) { return elementary::to_bfloat16(value); }
};
struct AsHalf {
  using Stored = uint16_t;
  LOCKSTEP_PORTABLE static uint16_t store(float value) { return elementary::to_half(value); }
};

/// The value of one element, for tests and for scattered elements.
template <class Draw>
LOCKSTEP_PORTABLE typename Draw::Value value_of_element(const Draw& draw, Key key, uint64_t stream, uint64_t index) {
  typename Draw::Value v[Draw::kPerBlock];
  draw(words(key, {index / Draw::kPerBlock, stream}), v);
  return v[index % Draw::kPerBlock];
}

}  // namespace lockstep::rng
