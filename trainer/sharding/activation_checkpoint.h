#pragma once
#include <ATen/core/Tensor.h>

#include <functional>
#include <optional>

#include "runtime/deferred/kept_results.h"

namespace lockstep::trainer {

/// `forward(input)` without keeping its activations: backward runs it again (Chen et al., 2016). Parameters that it
/// uses get their gradients in that second run; random numbers are the same, because they are named, not drawn in
/// sequence. `kept`: the results of the dearest ops are, all else is run again (KeptResults).
at::Tensor checkpointed(const std::function<at::Tensor(const at::Tensor&)>& forward, const at::Tensor& input,
                        std::optional<KeptMaps> kept = {});

}  // namespace lockstep::trainer
