#include "trainer/step/memory_need.h"

#include <c10/util/accumulate.h>

#include "core/error.h"
#include "core/files/proc_value.h"
#include "runtime/tensor/mesh.h"
#include "runtime/tensor/spec.h"
#include "trainer/gradients/shard_axes.h"
#include "trainer/step/training_state.h"

namespace lockstep::trainer {
namespace {

constexpr double kFloatBytes = 4, kGibibyte = 1 << 30;

double elements_here(const models::Parameter& parameter, const Layout& layout) {
  const auto* spec = layout.mesh().specs().intern(layout, parameter.sizes(), c10::kFloat);
  double elements = 0;
  for (const auto& sizes : spec->local_sizes) {
    double product = 1;  // more than 64 bits hold, perhaps
    for (const auto size : sizes) product *= static_cast<double>(size);
    elements += product;
  }
  return elements;
}

double state_bytes(models::Model& model, const Stages& stages, const Optimizer& optimizer,
                   const std::vector<ParameterSettings>& settings, bool replicas_share) {
  double bytes = 0;
  const auto parameters = model.parameters();
  for (size_t p = 0; p < parameters.size(); ++p) {
    const auto slots = optimizer.slots(description_of(*parameters[p], settings[p])).size();
    const auto layout = stages.plan_of(*parameters[p]).stored(*parameters[p]);
    double elements = elements_here(*parameters[p], layout);
    if (parameters[p]->trainable()) {
      elements *= 2;  // its gradient, before replicas share it out
      elements += static_cast<double>(slots) *
                  elements_here(*parameters[p], update_layout(layout, parameters[p]->sizes(), replicas_share));
    }
    bytes += kFloatBytes * elements;
  }
  return bytes;
}

/// Ranks that hold other parts of a batch or of the vocabulary have as much between them.
double logits_bytes(const Mesh& mesh, const models::Model& model, const Batching& batching, int64_t seq_len) {
  const auto share = static_cast<double>(mesh.local_count()) / mesh.rank_count();
  return share * kFloatBytes * static_cast<double>(batching.local_batch_size * batching.data_parallel) *
         static_cast<double>(seq_len) * static_cast<double>(model.vocabulary());
}

}  // namespace

void require_memory(models::Model& model, Stages& stages, const Optimizer& optimizer,
                    const std::vector<ParameterSettings>& settings, const Batching& batching, int64_t seq_len,
                    int64_t logits_copies, bool replicas_share) {
  const double state = state_bytes(model, stages, optimizer, settings, replicas_share);
  const double logits =
      static_cast<double>(logits_copies) * logits_bytes(stages.last().mesh(), model, batching, seq_len);
  const auto memory = static_cast<double>(memory_bytes());
  if (state + logits > memory)
    fail<BadInput>(
        "this process would need more than {:.0f} GiB: {:.0f} for parameters, gradients and optimizer state of its "
        "ranks, "
        "{:.0f} for a microbatch's logits; there are {:.0f} GiB. Choose a smaller [model], training.local_batch_size "
        "or "
        "training.seq_len, or more hosts.",
        (state + logits) / kGibibyte, state / kGibibyte, logits / kGibibyte, memory / kGibibyte);
}

}  // namespace lockstep::trainer
