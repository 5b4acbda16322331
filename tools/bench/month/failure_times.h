#pragma once
#include <cstdint>

namespace lockstep::bench {

/// When ranks are lost, at the rate of Llama 3's pre-training on 16,384 GPUs: 419 unexpected interruptions in 54 days
/// (A. Grattafiori et al., "The Llama 3 herd of models", 2024, table 5). Times between two are independent of each
/// other and exponential. A pure function of the failure's number.
struct FailureTimes {
  static constexpr double kMeanGap = 54.0 * 24 * 3600 / 419;  ///< seconds

  /// Seconds between failure `number` - 1, or the beginning, and failure `number`.
  static double gap(uint64_t number);
  /// Which of so many ranks it is.
  static int rank(uint64_t number, int ranks);
};

}  // namespace lockstep::bench
