#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "core/phase.h"

namespace lockstep {

/// Names one op of a run, the same on every mesh: (step, microbatch, phase, module path, op, occurrence).
struct OpId {
  int64_t step = 0, microbatch = 0;
  Phase phase = Phase::kInit;
  std::string module;      ///< "layers.3.attention"; empty at the top
  std::string op;          ///< "mm", "add.Tensor"
  int64_t occurrence = 0;  ///< how many ops with the same other fields came before

  /// "step 17, microbatch 0, backward, layers.3.attention, mm #2"
  std::string text() const;
};

}  // namespace lockstep
