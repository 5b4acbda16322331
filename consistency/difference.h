#pragma once
#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "consistency/held_shards.h"

namespace lockstep {

/// In the float64 domain rounding is 1e-14 and an error of logic keeps its size.
inline constexpr double kFloat64Tolerance = 1e-9;
/// In place of a tolerance: bits have to be equal (+0 and -0 are not; NaN equals NaN).
inline constexpr double kBits = -1;

/// How a tensor compares with what it should be, by its worst element.
struct Difference {
  std::string kind;     ///< "loss", "gradient norm", "gradient", "parameter", "optimizer state", "result", ...
  std::string name;     ///< of the parameter, of the op; empty for scalars
  double relative = 0;  ///< |candidate - reference| over the reference tensor's largest element
  std::vector<int64_t> index;
  double reference = 0, candidate = 0;
  int64_t wrong_elements = 0, elements = 0;  ///< how many are beyond the tolerance
  int64_t differing_bits = 0;                ///< of floats, where bits are compared
  double over_bound = 0;                     ///< the largest error over what is allowed to it, where a bound says that
  std::string pattern;                       ///< of what is wrong (damage.h)
  std::vector<int> ranks;                    ///< whose shards are wrong; empty: all of those that were looked at
  std::string reference_name = "one device";
  std::string sizes;  ///< if they are the difference: "sizes [3], one device: [4]"

  bool agrees() const { return wrong_elements == 0 && sizes.empty(); }
  /// "gradient of layers.0.attention.qkv.weight[12, 7] = 0.5, one device: 0.25 (relative 5e-1; 3 of 4096 elements
  /// wrong, on rank 1: times 2, in [0:3, 0:1])"
  std::string text() const;
};

/// Compares with what one device has. `tolerance`: relative to the tensor's largest element (0: equal numbers, of which
/// +0 and -0 are one), or kBits. Integers have to be equal either way.
Difference difference_of(const at::Tensor& plain, const at::Tensor& expected, double tolerance);

/// Each rank's shard with its part of `expected`; of a Partial what its parts combine to. REQUIRES: of a Partial,
/// all_shards().
Difference difference_of(const HeldShards& held, const at::Tensor& expected, double tolerance);

/// Each element may be as far from `expected` as `allowed` says, which broadcasts to it. All are doubles; integers have
/// to be equal.
Difference difference_within(const HeldShards& held, const at::Tensor& expected, const at::Tensor& allowed);

/// Whether each element is equal to the expected one, or no further from it than `allowed`, which broadcasts to it; the
/// same that difference_of() says, and nothing but yes or no. `allowed` not defined: equal numbers.
bool are_close(const HeldShards& held, const at::Tensor& expected, const at::Tensor& allowed);

/// Of a tensor that has other sizes than one device's.
Difference difference_of_sizes(c10::IntArrayRef sizes, c10::IntArrayRef expected);

/// "rank 1", "ranks 0-2, 5".
std::string ranks_text(const std::vector<int>& ranks);

}  // namespace lockstep
