#include "tools/lockstep/reports/verify/price_report.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "tools/lockstep/console.h"

namespace lockstep::tool {
namespace {

using Json = nlohmann::ordered_json;
using trainer::Price, trainer::PriceTable;

double mebibytes(double bytes) { return bytes / (1 << 20); }

std::string ratio_text(double ratio) { return std::isfinite(ratio) ? fmt::format("{:.2f}x", ratio) : "-"; }
Json finite_or_null(double ratio) { return std::isfinite(ratio) ? Json(ratio) : Json(nullptr); }

void print_row(const Price& price) {
  print_out("{:<13} {:<15} {:>9} {:>13.3f} {:>7} {:>9.3f} {:>7}\n", price.axis, to_text(price.kind),
            price.canonical.count, mebibytes(price.canonical.bytes),
            price.nodes > 0 ? fmt::format("{:.2f}", price.nodes) : "-", mebibytes(price.native.bytes),
            ratio_text(price.ratio()));
}

}  // namespace

void print_prices(const PriceTable& prices) {
  print_out("{:<13} {:<15} {:>9} {:>13} {:>7} {:>9} {:>7}\n", "axis", "collective", "per step", "MiB sent", "nodes",
            "native", "ratio");
  for (const auto& price : prices.rows) print_row(price);
  print_out("{:<39} {:>13.3f} {:>7} {:>9.3f} {:>7}\n", "all", mebibytes(prices.canonical_bytes), "",
            mebibytes(prices.native_bytes), ratio_text(prices.ratio()));
  print_gathered(prices.gathered);
}

void print_gathered(const std::map<ImplicitGather, int64_t>& gathered) {
  for (const auto& [gather, plans] : gathered)
    print_out("warning: {} gathers an operand unasked ({} {}):\n         {}\n", gather.op, plans,
              plans == 1 ? "plan" : "plans", gather.reason);
}

Json prices_json(const PriceTable& prices) {
  auto rows = Json::array();
  for (const auto& price : prices.rows)
    rows.push_back({{"axis", price.axis},
                    {"collective", to_text(price.kind)},
                    {"count", price.canonical.count},
                    {"bytes", price.canonical.bytes},
                    {"nodes", price.nodes},
                    {"native_count", price.native.count},
                    {"native_bytes", price.native.bytes},
                    {"ratio", finite_or_null(price.ratio())}});
  return rows;
}

Json gathered_json(const std::map<ImplicitGather, int64_t>& gathered) {
  auto rows = Json::array();
  for (const auto& [gather, plans] : gathered)
    rows.push_back({{"op", gather.op}, {"reason", gather.reason}, {"plans", plans}});
  return rows;
}

}  // namespace lockstep::tool
