#pragma once
#include <nlohmann/json_fwd.hpp>

#include "trainer/dry_run/price_table.h"

namespace lockstep::tool {

/// A row per axis and kind of collective: what a rank sends in a step beside native numerics; then what is gathered and
/// why. At most 80 columns.
void print_prices(const trainer::PriceTable& prices);

/// What no rule serves as it lies, with the reason.
void print_gathered(const std::map<ImplicitGather, int64_t>& gathered);

nlohmann::ordered_json prices_json(const trainer::PriceTable& prices);
nlohmann::ordered_json gathered_json(const std::map<ImplicitGather, int64_t>& gathered);

}  // namespace lockstep::tool
