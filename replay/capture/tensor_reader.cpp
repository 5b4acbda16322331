#include "replay/capture/tensor_reader.h"

#include "replay/capture/background_reader.h"
#include "replay/capture/cuda_queue.h"
#include "replay/capture/device_reader.h"

namespace lockstep::replay {

std::unique_ptr<TensorReader> make_tensor_reader(c10::DeviceType device, std::size_t limit_bytes) {
  if (device == c10::kCUDA) return std::make_unique<DeviceReader>(device, make_cuda_queue(), limit_bytes);
  return std::make_unique<BackgroundReader>(limit_bytes);
}

}  // namespace lockstep::replay
