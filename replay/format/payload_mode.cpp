#include "replay/format/payload_mode.h"

#include <charconv>

#include "core/error.h"

namespace lockstep::replay {
namespace {

constexpr std::string_view kRing = "ring:";
constexpr int64_t kMostSteps = 1'000'000;

/// K of "ring:K", or 0.
int64_t ring_of(std::string_view text) {
  if (!text.starts_with(kRing)) return 0;
  int64_t steps = 0;
  const auto digits = text.substr(kRing.size());
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), steps);
  return error == std::errc() && end == digits.data() + digits.size() && steps <= kMostSteps ? steps : 0;
}

}  // namespace

bool is_payload_mode(std::string_view text) { return text == "all" || text == "none" || ring_of(text) > 0; }

PayloadMode parse_payload_mode(std::string_view text) {
  LOCKSTEP_CHECK(is_payload_mode(text));
  return {text != "none", ring_of(text)};
}

}  // namespace lockstep::replay
