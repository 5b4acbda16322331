// Stands for cuda_queue.cu in a build without CUDA.
#include "core/error.h"
#include "replay/capture/cuda_queue.h"

namespace lockstep::replay {

std::unique_ptr<DeviceQueue> make_cuda_queue() {
  fail<BadInput>("digests on a GPU: built without CUDA (configure with -DLOCKSTEP_CUDA=ON)");
}

std::string cuda_device_name() { return ""; }

}  // namespace lockstep::replay
