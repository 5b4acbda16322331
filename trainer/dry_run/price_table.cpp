#include "trainer/dry_run/price_table.h"

#include <limits>
#include <set>

namespace lockstep::trainer {
namespace {

double ratio_of(double canonical, double native) {
  if (native > 0) return canonical / native;
  return canonical > 0 ? std::numeric_limits<double>::infinity() : 1;
}

double nodes_on(const DryRun& dry, const std::string& axis, CollectiveKind kind) {
  const auto found = dry.nodes.find(axis);
  return found == dry.nodes.end() ? 0 : found->second[static_cast<size_t>(kind)];
}

}  // namespace

double Price::ratio() const { return ratio_of(canonical.bytes, native.bytes); }
double PriceTable::ratio() const { return ratio_of(canonical_bytes, native_bytes); }

PriceTable price_table(const DryRun& canonical, const DryRun& native) {
  std::set<std::string> axes;
  for (const auto* dry : {&canonical, &native})
    for (const auto& [axis, kinds] : dry->traffic.by_axis()) axes.insert(axis);
  PriceTable table{{}, canonical.traffic.bytes(), native.traffic.bytes(), canonical.traffic.implicit_gathers()};
  for (const auto& axis : axes)
    for (size_t k = 0; k < kCollectiveKinds; ++k) {
      const auto kind = static_cast<CollectiveKind>(k);
      const Price price{axis, kind, canonical.traffic.on(axis, kind), native.traffic.on(axis, kind),
                        nodes_on(canonical, axis, kind)};
      if (price.canonical.count + price.native.count > 0) table.rows.push_back(price);
    }
  return table;
}

PriceTable price_table(const Job& job, const TrainingRun::Options& options) {
  return price_table(dry_run(job, options), dry_run(with_native_numerics(job), options));
}

Job with_native_numerics(Job job) {
  job.numerics = {.mode = std::string(kNativeMode)};
  return job;
}

}  // namespace lockstep::trainer
