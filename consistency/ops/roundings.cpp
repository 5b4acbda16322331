#include "consistency/ops/roundings.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>

#include "consistency/ops/rounding.h"
#include "consistency/traced_op.h"
#include "core/digest/digest.h"
#include "core/error.h"
#include "rng/distribution.h"
#include "rng/subarray.h"
#include "runtime/context/random.h"
#include "runtime/dispatch/op_results.h"
#include "runtime/plain/lazy_copy.h"
#include "runtime/plain/plain_tensors.h"
#include "runtime/tensor/packed_rows.h"
#include "runtime/tensor/sharded_tensor.h"

namespace lockstep {
namespace {

/// -1 or 1 for each element.
at::Tensor signs(c10::IntArrayRef sizes, uint64_t stream) {
  constexpr uint64_t kSeed = 1;
  auto drawn = at::empty(sizes, c10::kDouble);
  fill_random(drawn, rng::uniform(-1, 1), kSeed, stream,
              rng::Subarray::of(sizes.vec(), {std::vector<int64_t>(sizes.size()), sizes.vec()}));
  return at::where(drawn < 0, at::full({}, -1.0, drawn.options()), at::full({}, 1.0, drawn.options()));
}

}  // namespace

std::string text_of_update(const OpId& id) { return fmt::format("{}, {} #{}", id.module, id.op, id.occurrence); }

void Roundings::before_op(const OpEvent& event) {
  if (event.id.phase == Phase::kOptimizer) updates_.push_back(text_of_update(event.id));
  if (!is_unwritten(event) && has_bound(event)) begun_.push_back({event.id.text(), TakenOperands(event, false)});
}

void Roundings::after_op(const OpEvent& event, std::span<const c10::IValue> results) {
  const auto id = event.id.text();
  if (begun_.empty() || begun_.back().id != id) return;
  const auto begun = std::move(begun_.back());
  begun_.pop_back();
  const PlainTensors guard;
  const at::NoGradGuard no_grad;
  const auto given = op_results(event, results);
  std::vector<HeldShards> held;
  for (const auto& result : given) held.push_back(local_shards(result.tensor));
  const auto allowed = allowed_as_declared(event, begun.operands, held);
  for (size_t r = 0; r < given.size(); ++r) {
    if (!allowed[r].defined()) continue;
    const auto& spec = spec_of(given[r].tensor);
    auto& set = *sharded(given[r].tensor).shards();
    const auto& value = set.local_tensors()[0];
    LOCKSTEP_CHECK_EQ(held[r].shards[0].numel(), c10::multiply_integers(spec.sizes), "{} on one device", id);
    before_write(value);
    const auto all = allowed[r].masked_fill(allowed[r].isinf(), 0).broadcast_to(spec.sizes);
    const auto errors = spec.is_packed() ? packed(all, set.present()[0]) : all.view(value.sizes());
    at::Tensor(value).add_((errors * signs(value.sizes(), digest(id).high + r)).to(value.device()));
    rounded_values_ += value.numel();
  }
}

}  // namespace lockstep
