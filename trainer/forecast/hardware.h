#pragma once
#include <string>
#include <vector>

namespace lockstep::trainer::forecast {

/// A kind of accelerator, as its maker describes it, and what of that programs reach.
struct Hardware {
  std::string name;
  double memory_bytes = 0;
  double operations_per_second = 0;    ///< of dense products of bfloat16
  double memory_bytes_per_second = 0;  ///< read and written
  int64_t ranks_per_host = 8;
  double host_bytes_per_second = 0;     ///< of a rank to others of its host, each way
  double network_bytes_per_second = 0;  ///< of a rank to other hosts, each way
  // What a collective waits for besides, for each doubling of its ranks.
  double host_latency_seconds = 2e-6, network_latency_seconds = 5e-6;
  /// What a host's ranks compute at once, in what one of them does alone; 0: as many as it has.
  double ranks_at_full_speed = 0;
  // Shares. Those of computing are fitted to Lockstep's own steps on one GPU, that of links is assumed (docs/scale.md).
  double products = 0.734;   ///< of operations_per_second, by linear maps
  double attention = 0.180;  ///< of the same, by attention with a causal mask, of what the mask leaves
  double elements = 0.418;   ///< of memory_bytes_per_second, by norms, gates and the like
  double optimizer = 0.9;    ///< of the same, by AdamW, norms of gradients and conversions
  double links = 0.75;       ///< of a link's bytes, by collectives
};

/// What shares may be; caches are faster than memory.
inline constexpr double kLeastShare = 1e-3, kMostShare = 1, kMostShareOfMemory = 100;

/// "h100", "h200", "a100", or a TOML file with these fields under their names above (docs/scale.md); what a file leaves
/// out is as above. BadInput names what is wrong.
Hardware hardware_of(const std::string& name_or_file);
std::vector<std::string> hardware_names();

/// As such a file: hardware_of() of it has the same fields, but for the name.
std::string to_toml(const Hardware& hardware);

}  // namespace lockstep::trainer::forecast
