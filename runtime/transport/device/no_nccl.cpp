// Stands for nccl_link.cpp in a build without CUDA.
#include "core/error.h"
#include "runtime/transport/device/nccl_link.h"

namespace lockstep {
namespace {
constexpr const char* kReason = "built without CUDA (configure with -DLOCKSTEP_CUDA=ON)";
}

std::string nccl_unavailable_reason() { return kReason; }

std::unique_ptr<DeviceLink> make_nccl_link(Transport&, int, int) {
  fail<BadInput>("communication between GPUs: {}", kReason);
}

}  // namespace lockstep
