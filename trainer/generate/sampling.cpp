#include "trainer/generate/sampling.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "core/elementary/elementary.h"
#include "core/error.h"
#include "rng/philox.h"
#include "rng/stream.h"

namespace lockstep::trainer {
namespace {

/// In [0, 1), of this sample's token at this position.
double uniform(const Sampling& sampling, int64_t sample, int64_t position) {
  const auto stream = rng::stream_of({0, "generate", static_cast<uint64_t>(sample)});
  const auto words = rng::words({sampling.seed}, {static_cast<uint64_t>(position), stream});
  return static_cast<double>(words.pair(0) >> 11) * 0x1p-53;
}

/// Tokens from the likeliest on, of equal ones the first first.
std::vector<int64_t> by_likelihood(std::span<const float> logits) {
  std::vector<int64_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return logits[static_cast<size_t>(a)] > logits[static_cast<size_t>(b)];
  });
  return order;
}

}  // namespace

int64_t next_token(std::span<const float> logits, const Sampling& sampling, int64_t sample, int64_t position) {
  LOCKSTEP_CHECK(!logits.empty());
  if (!(sampling.temperature > 0)) return std::max_element(logits.begin(), logits.end()) - logits.begin();
  const auto order = by_likelihood(logits);
  const double highest = logits[static_cast<size_t>(order[0])];
  std::vector<double> sums;
  double all = 0;
  for (const auto token : order) {
    const double gap = logits[static_cast<size_t>(token)] - highest;
    sums.push_back(all += elementary::exp(gap / sampling.temperature));
  }
  const auto last = std::lower_bound(sums.begin(), sums.end(), sampling.top_p * all);
  const auto count = std::min<int64_t>(last - sums.begin() + 1, static_cast<int64_t>(sums.size()));
  const double wanted = uniform(sampling, sample, position) * sums[static_cast<size_t>(count - 1)];
  const auto chosen = std::upper_bound(sums.begin(), sums.begin() + count, wanted) - sums.begin();
  return order[static_cast<size_t>(std::min<int64_t>(chosen, count - 1))];
}

}  // namespace lockstep::trainer
