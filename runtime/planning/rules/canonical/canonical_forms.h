#pragma once
#include <span>
#include <string_view>
#include <vector>

#include "runtime/planning/rule_set.h"

/// What canonical numerics makes of the op table's rows (docs/numerics.md): data beside them. A row without any
/// refuses.
namespace lockstep::rules {

/// Local calls whose bits depend on nothing but values and global indices: all of them, and each family's.
std::vector<CanonicalRule> canonical();
std::span<const CanonicalRule> canonical_activations();
std::span<const CanonicalRule> canonical_complex();
std::span<const CanonicalRule> canonical_elementwise();
std::span<const CanonicalRule> canonical_extremes();
std::span<const CanonicalRule> canonical_indexing();
std::span<const CanonicalRule> canonical_moves_back();
std::span<const CanonicalRule> canonical_products();
std::span<const CanonicalRule> canonical_sums();

/// The ops that need no form: slices, offsets and meshes give the same bits (tests/runtime/planning/). Sorted.
std::span<const std::string_view> canonical_as_is();

/// Of those with a form, and of those without, the ops that have a CPU's bits on a GPU. Sorted.
std::span<const std::string_view> canonical_on_gpu();

/// Whether complex numbers, too, give the same bits by this op's form, or as it is: others refuse them.
bool takes_complex(std::string_view op, bool own_form);

/// What to write instead of an op that refuses, such as "(x - y).square().mean()"; null where nothing is known.
const char* instead_of(std::string_view op);

}  // namespace lockstep::rules
