#pragma once
#include <ATen/core/Tensor.h>

namespace lockstep {

/// A plain tensor of its own that shares the bytes of `source` until one of the two is about to be written: whoever
/// writes calls before_write() first. Views of either share its fate. Thread-safe. A part of other bytes is copied at
/// once: all of them would be, later.
at::Tensor lazy_copy(const at::Tensor& source);

/// To be called before the bytes of `tensor` are written: lazy copies of them get bytes of their own, and so does
/// `tensor` if it is one. Costs one load where there are no lazy copies.
void before_write(const at::Tensor& tensor);

}  // namespace lockstep
