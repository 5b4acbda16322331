#include "runtime/dispatch/composed/channel_shuffle.h"

#include <ATen/Functions.h>

#include "core/error.h"

namespace lockstep::composed {

at::Tensor native_channel_shuffle(const at::Tensor& self, int64_t groups) {
  if (self.dim() < 3 || groups < 1 || self.size(1) % groups != 0)
    fail<BadInput>(
        "native_channel_shuffle: {} groups of the channels of {}; expected [batch, channels, ...], and a "
        "number of groups that divides the channels",
        groups, c10::str(self.sizes()));
  const auto apart = self.unflatten(1, {groups, self.size(1) / groups}).transpose(1, 2);
  return apart.clone(at::MemoryFormat::Contiguous).flatten(1, 2);
}

}  // namespace lockstep::composed
