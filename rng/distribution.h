#pragma once
#include <cstdint>
#include <string_view>

/// What can be drawn. docs/rng.md documents bit by bit how words become values.
namespace lockstep::rng {

/// The dtype a draw is declared in. Sharded storage in another type converts the drawn values afterwards.
enum class ScalarKind { kFloat32, kFloat64, kBFloat16, kFloat16, kInt64, kBool };

/// Bytes of one element.
int64_t size_of(ScalarKind kind);
std::string_view name_of(ScalarKind kind);
inline bool is_floating(ScalarKind kind) { return kind <= ScalarKind::kFloat16; }

/// A distribution and its parameters; made by the functions below, which check them (BadInput).
struct Distribution {
  enum class Kind { kUniform, kNormal, kTruncatedNormal, kBernoulli, kIntegers };
  Kind kind = Kind::kUniform;
  double low = 0, high = 1;           ///< uniform [low, high); truncated normal [low, high]
  double mean = 0, deviation = 1;     ///< of the normal, before truncation
  double probability = 1, value = 1;  ///< Bernoulli: `value` with this probability, else 0
  int64_t first = 0, end = 1;         ///< integers in [first, end)
};

/// Uniform on [low, high), finite, low < high. Floating dtypes.
Distribution uniform(double low = 0, double high = 1);

/// Normal with finite mean and standard deviation >= 0. Floating dtypes.
Distribution normal(double mean = 0, double deviation = 1);

/// Normal restricted to [low, high], low < high; deviation > 0; the interval must hold a probability above 1e-300.
Distribution truncated_normal(double mean, double deviation, double low, double high);

/// `value` with the given probability, else 0. kBool and floating dtypes; the mask does not depend on the dtype.
Distribution bernoulli(double probability, double value = 1);

/// A dropout mask: 1 / keep with probability `keep` (0 < keep <= 1), else 0, so that its mean is 1.
Distribution dropout_mask(double keep);

/// Integers in [first, end), first < end, equally likely up to 2^-64 of the range. kInt64.
Distribution integers(int64_t first, int64_t end);

}  // namespace lockstep::rng
