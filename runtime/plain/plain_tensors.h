#pragma once
#include <c10/core/impl/LocalDispatchKeySet.h>

namespace lockstep {

/// For code below the mesh device: ops on shards go straight to the CPU kernels, without autograd and with the normal
/// dispatch state (an inner guard of the caller, such as the mesh factory guard, does not leak in).
class PlainTensors {
 public:
  PlainTensors()
      : guard_(c10::default_included_set,
               c10::autograd_dispatch_keyset_with_ADInplaceOrView | c10::default_excluded_set) {}

 private:
  c10::impl::ForceDispatchKeyGuard guard_;
};

}  // namespace lockstep
