#pragma once
#include <map>
#include <string>
#include <vector>

#include "tools/bench/paired.h"

namespace lockstep::bench {

/// One line of `lockstep bench` and of its JSON: something of ours beside its peer, measured in one run.
struct BenchRow {
  std::string name;
  double ours = 0, peer = 0;  ///< in `unit`
  std::string peer_name;
  double ratio = 0;  ///< ours / peer, the median over pairs: below 1 we are faster
  std::string unit;
  double ratio_upper = 0;  ///< 95 % upper confidence bound of that median
  /// More about it, under the names of its JSON.
  std::map<std::string, double> facts = {};
  std::map<std::string, std::vector<double>> curves = {};
};

/// A row from a timing; `scale` turns seconds of one call into `unit`.
inline BenchRow make_row(std::string name, const PairedTiming& timing, std::string peer_name, std::string unit,
                         double scale) {
  return {std::move(name),
          timing.ours * scale,
          timing.peer * scale,
          std::move(peer_name),
          timing.ratio,
          std::move(unit),
          timing.upper,
          {},
          {}};
}

/// Whether a row's name fits one of the patterns, which are separated by commas (fnmatch).
bool fits(const std::string& name, const std::string& patterns);
/// Throws BadInput, listing the names, if none of them fits.
void require_fit(const char* benchmark, const std::vector<std::string>& names, const std::string& patterns);

}  // namespace lockstep::bench
