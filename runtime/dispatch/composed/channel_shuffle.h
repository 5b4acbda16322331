#pragma once
#include <ATen/core/Tensor.h>

namespace lockstep::composed {

/// Channels of `groups` groups, one of each in turn. A copy, as LibTorch's kernel for CPUs makes it, where its
/// decomposition would be a view of what has one group.
at::Tensor native_channel_shuffle(const at::Tensor& self, int64_t groups);

}  // namespace lockstep::composed
