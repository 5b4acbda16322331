#include "trainer/data/sample_order.h"

#include "core/error.h"
#include "rng/permutation.h"
#include "rng/stream.h"

namespace lockstep::trainer {
namespace {

int64_t permuted(uint64_t seed, int64_t step, const std::string& name, int64_t count, int64_t index) {
  const auto stream = rng::stream_of({.step = static_cast<uint64_t>(step), .module_path = name});
  const rng::Permutation order(rng::Key{seed}, stream, static_cast<uint64_t>(count));
  return static_cast<int64_t>(order(static_cast<uint64_t>(index)));
}

}  // namespace

SampleOrder::SampleOrder(std::vector<Source> sources, uint64_t seed) : sources_(std::move(sources)), seed_(seed) {
  for (const auto& source : sources_) {
    LOCKSTEP_CHECK(source.samples >= 1 && source.weight >= 1);
    round_ += source.weight;
  }
}

/// The first source has the stream that a single text has.
int64_t SampleOrder::sample_of(size_t source, int64_t read) const {
  const auto samples = sources_[source].samples;
  const auto name = source == 0 ? std::string("data order") : fmt::format("data order {}", source);
  return permuted(seed_, read / samples, name, samples, read % samples);
}

SampleOrder::Place SampleOrder::operator()(int64_t position) const {
  LOCKSTEP_CHECK(position >= 0, "sample position {}", position);
  if (sources_.size() == 1) return {0, sample_of(0, position)};
  const auto round = position / round_;
  auto slot = permuted(seed_, round, "data mixture", round_, position % round_);
  for (size_t source = 0;; ++source) {
    const auto weight = sources_[source].weight;
    if (slot < weight) return {source, sample_of(source, round * weight + slot)};
    slot -= weight;
  }
}

}  // namespace lockstep::trainer
