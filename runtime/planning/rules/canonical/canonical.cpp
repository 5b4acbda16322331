#include "runtime/planning/rules/canonical/canonical_forms.h"

namespace lockstep::rules {

std::vector<CanonicalRule> canonical() {
  std::vector<CanonicalRule> all;
  for (const auto family : {canonical_activations, canonical_complex, canonical_elementwise, canonical_extremes,
                            canonical_indexing, canonical_moves_back, canonical_products, canonical_sums})
    for (const auto& form : family()) all.push_back(form);
  return all;
}

}  // namespace lockstep::rules
