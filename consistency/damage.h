#pragma once
#include <ATen/core/Tensor.h>

#include <string>

namespace lockstep {

/// The pattern of what is wrong: "times 2, everywhere", "zeros, in [4:8, 0:16]", "one bit, in one element",
/// "the same values in another order". `wrong`: which elements (bools); all three of equal sizes. `origin`: where the
/// wrong values come from, if that is known ("old values"). REQUIRES: one is wrong.
std::string damage_text(const at::Tensor& expected, const at::Tensor& candidate, const at::Tensor& wrong,
                        const std::string& origin = {});

}  // namespace lockstep
