#include "tools/bench/month/failure_times.h"

#include "core/elementary/elementary.h"
#include "rng/draws.h"
#include "rng/philox.h"
#include "rng/stream.h"

namespace lockstep::bench {
namespace {

rng::Words words_of(uint64_t number) {
  constexpr rng::Key kKey{419};
  return rng::words(kKey, {number, rng::stream_of({0, "failure"})});
}

}  // namespace

double FailureTimes::gap(uint64_t number) {
  return -elementary::log(1 - rng::unit_interval(words_of(number).pair(0))) * kMeanGap;
}

int FailureTimes::rank(uint64_t number, int ranks) {
  return static_cast<int>(words_of(number).word[2] % static_cast<uint32_t>(ranks));
}

}  // namespace lockstep::bench
