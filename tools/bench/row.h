#pragma once
#include <string>

namespace lockstep::bench {

/// One line of `lockstep bench` and of its JSON: something of ours beside its peer, measured in one run.
struct BenchRow {
  std::string name;
  double ours = 0, peer = 0;  ///< in `unit`
  std::string peer_name;
  double ratio = 0;  ///< ours / peer, the median over pairs: below 1 we are faster
  std::string unit;
};

}  // namespace lockstep::bench
