#pragma once
#include <cstdint>
#include <string_view>

namespace lockstep::replay {

/// record.payload: "none", digests alone; "all"; "ring:K", the last K steps, in memory until something fails.
struct PayloadMode {
  bool is_kept = true;
  int64_t ring = 0;  ///< 0: every step is written
};

/// REQUIRES: is_payload_mode(text).
PayloadMode parse_payload_mode(std::string_view text);
bool is_payload_mode(std::string_view text);

}  // namespace lockstep::replay
