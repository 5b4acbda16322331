#include "replay/view/time_axis.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"

namespace lockstep::replay {
namespace {

struct Unit {
  const char* name;
  uint64_t nanoseconds;
};
constexpr Unit kUnits[] = {{"ns", 1}, {"us", 1'000}, {"ms", 1'000'000}, {"s", 1'000'000'000}};

/// The largest of which a length is at least one.
Unit unit_of(uint64_t length) {
  size_t unit = 0;
  while (unit + 1 < std::size(kUnits) && length >= kUnits[unit + 1].nanoseconds) ++unit;
  return kUnits[unit];
}

/// With as many decimals as multiples of `part` need.
std::string label_of(uint64_t at, uint64_t part, Unit unit) {
  auto label = fmt::format("{}", fmt::group_digits(at / unit.nanoseconds));
  uint64_t place = unit.nanoseconds / 10;
  if (part < unit.nanoseconds) label += '.';
  for (; part < place * 10 && place > 0; place /= 10) label += static_cast<char>('0' + at / place % 10);
  return fmt::format("{} {}", label, unit.name);
}

}  // namespace

std::string time_text(uint64_t nanoseconds) {
  if (nanoseconds == 0) return "0";
  size_t unit = 0;
  auto value = static_cast<double>(nanoseconds);
  while (value >= 999.5 && unit + 1 < std::size(kUnits)) value /= 1000, ++unit;
  const int decimals = unit == 0 || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
  return fmt::format("{:.{}f} {}", value, decimals, kUnits[unit].name);
}

uint64_t round_part(uint64_t length, size_t most) {
  LOCKSTEP_CHECK(most > 0);
  for (uint64_t decade = 1;; decade *= 10)
    for (const uint64_t part : {decade, 2 * decade, 5 * decade})
      if (length / part <= most || decade >= 1'000'000'000'000'000'000U) return part;
}

std::string part_text(uint64_t part) { return label_of(part, part, unit_of(part)); }

std::vector<Tick> ticks_of(TimeWindow window, size_t most) {
  const auto part = round_part(window.length(), most);
  const auto unit = unit_of(window.length());
  std::vector<Tick> ticks;
  const uint64_t last = window.end / part;
  for (uint64_t number = window.begin / part + (window.begin % part != 0); number <= last; ++number)
    ticks.push_back({number * part, number == 0 ? "0" : label_of(number * part, part, unit)});
  return ticks;
}

}  // namespace lockstep::replay
