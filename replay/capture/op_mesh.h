#pragma once
#include <algorithm>

#include "runtime/context/observer.h"
#include "runtime/planning/plan.h"
#include "runtime/tensor/spec.h"

namespace lockstep::replay {

/// Whether a rank has a part in an op: it is on the mesh of what the op gives or takes. Of an op on no mesh all have. A
/// rank's recording holds no others: a process of its own need not run them.
inline bool has_part(const OpEvent& event, int rank) {
  for (const auto* specs : {&event.plan.results, &event.plan.given})
    for (const auto* spec : *specs)
      if (spec) {
        const auto& ranks = spec->layout.mesh().ranks();
        return std::find(ranks.begin(), ranks.end(), rank) != ranks.end();
      }
  return true;
}

}  // namespace lockstep::replay
