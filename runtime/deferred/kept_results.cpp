#include "runtime/deferred/kept_results.h"

#include <ATen/core/Tensor.h>

#include <utility>

#include "core/error.h"

namespace lockstep {
namespace {

thread_local KeptResults* current_results = nullptr;

std::vector<uint32_t> versions_of(std::span<const c10::IValue> results) {
  std::vector<uint32_t> versions;
  for (const auto& result : results)
    if (result.isTensor() && result.toTensor().defined())
      versions.push_back(static_cast<uint32_t>(result.toTensor()._version()));
  return versions;
}

/// The same values, in a tensor of its own: what is given becomes part of a graph.
c10::IValue given(const c10::IValue& result) {
  return result.isTensor() && result.toTensor().defined() ? c10::IValue(result.toTensor().tensor_data()) : result;
}

}  // namespace

KeptResults::Scope::Scope(KeptResults& results, bool gives) : previous_(std::exchange(current_results, &results)) {
  results.gives_ = gives;
  results.linear_maps_ = 0;
}
KeptResults::Scope::~Scope() { current_results = previous_; }

KeptResults* KeptResults::current() { return current_results; }

bool KeptResults::takes(std::string_view op) {
  if (op == "linear" || op == "mesh::float8_linear") return ++linear_maps_ % 2 == 1 || maps_ == KeptMaps::kAll;
  return op == "mesh::attention" || op == "mesh::document_attention";
}

void KeptResults::keep(std::string_view op, std::span<const c10::IValue> results) {
  kept_.push_back({std::string(op), {results.begin(), results.end()}, versions_of(results)});
}

std::vector<c10::IValue> KeptResults::give(std::string_view op) {
  LOCKSTEP_CHECK(!kept_.empty() && kept_.front().op == op, "{} is recomputed where the forward ran {}", op,
                 kept_.empty() ? "nothing" : kept_.front().op);
  const auto kept = std::move(kept_.front());
  kept_.pop_front();
  if (kept.versions != versions_of(kept.results))
    fail<BadInput>(
        "activation_checkpoint.selective_ac_option \"{}\" keeps what {} gave, and the model wrote over it; let it "
        "make another tensor, or choose a layer period.",
        maps_ == KeptMaps::kAll ? "linear" : "op", op);
  std::vector<c10::IValue> results;
  for (const auto& result : kept.results) results.push_back(given(result));
  return results;
}

}  // namespace lockstep
