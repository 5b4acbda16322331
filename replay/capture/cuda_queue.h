#pragma once
#include <memory>
#include <string>

#include "replay/capture/device_queue.h"

namespace lockstep::replay {

/// The queue of the GPU that is in use: its default stream, which is LibTorch's. Its calls throw InternalError with
/// what CUDA says. Throws BadInput when built without CUDA.
std::unique_ptr<DeviceQueue> make_cuda_queue();

/// The name of the GPU that is in use, and the version of CUDA's driver: "NVIDIA H100 80GB HBM3, driver 13000". Empty
/// without one.
std::string cuda_device_name();

}  // namespace lockstep::replay
