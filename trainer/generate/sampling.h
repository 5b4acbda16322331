#pragma once
#include <cstdint>
#include <span>

/// Which token comes next.
namespace lockstep::trainer {

struct Sampling {
  double temperature = 0;  ///< 0: the likeliest token, of several the first
  double top_p = 1;  ///< of the likeliest tokens so many that they have this share at least (Holtzman et al., 2020)
  uint64_t seed = 0;
};

/// A token by its logits. Which one is a function of these numbers, the seed, the sample and the position: no
/// state, no libm, so that it is the same on every machine and mesh. REQUIRES: at least one that is finite.
int64_t next_token(std::span<const float> logits, const Sampling& sampling, int64_t sample, int64_t position);

}  // namespace lockstep::trainer
