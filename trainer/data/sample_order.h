#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::trainer {

/// Which sample of which source stands where in the order that training reads: a function of (seed, position) alone.
///
/// Positions are taken in rounds of as many as all weights together. Of each round a source has as many as its weight,
/// at places that a permutation of the round's own gives; its samples follow epoch by epoch, each a permutation of its
/// own. So after any whole number of rounds the proportions are exact, and each source's epochs are whole.
class SampleOrder {
 public:
  struct Source {
    int64_t samples = 0;
    int64_t weight = 1;
  };
  struct Place {
    size_t source = 0;
    int64_t sample = 0;
  };

  /// REQUIRES: one source at least, each of at least one sample and a weight of at least 1.
  SampleOrder(std::vector<Source> sources, uint64_t seed);

  /// REQUIRES: position >= 0.
  Place operator()(int64_t position) const;

 private:
  int64_t sample_of(size_t source, int64_t read) const;

  std::vector<Source> sources_;
  uint64_t seed_;
  int64_t round_ = 0;
};

}  // namespace lockstep::trainer
