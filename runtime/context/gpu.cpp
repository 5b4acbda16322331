#include "runtime/context/gpu.h"

#include <ATen/Context.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <dlfcn.h>

#include "core/error.h"
#include "rng/cuda_fill.h"

namespace lockstep {

void require_gpu(int index) {
  if (const auto reason = rng::cuda_unavailable_reason(); !reason.empty())
    fail<BadInput>("training.device = \"cuda\": {}", reason);
  // Not linked: a machine without a GPU need not have the libraries that it needs.
  if (!::dlopen("libtorch_cuda.so", RTLD_NOW | RTLD_GLOBAL))
    fail<BadInput>("training.device = \"cuda\": {}. Install torch 2.11.0 with the CUDA packages that it depends on.",
                   ::dlerror());
  at::globalContext().lazyInitDevice(c10::kCUDA);
  const auto* gpus = c10::impl::getDeviceGuardImpl(c10::kCUDA);
  if (gpus->deviceCount() == 0) fail<BadInput>("training.device = \"cuda\": there is no GPU");
  gpus->setDevice({c10::kCUDA, static_cast<c10::DeviceIndex>(index % gpus->deviceCount())});
}

}  // namespace lockstep
