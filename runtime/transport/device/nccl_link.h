#pragma once
#include <memory>
#include <string>

#include "runtime/transport/device/device_link.h"

namespace lockstep {

/// Why no NCCL link can be made here: built without CUDA. Empty when one can.
std::string nccl_unavailable_reason();

/// A link over NCCL's point-to-point calls, for `rank` of `world`, on the GPU that is in use and its default stream.
/// Rank 0 makes the communicator's id and sends it over `headers`, whose ranks have proved themselves. All ranks call
/// it. Throws BadInput without CUDA, TransportError when NCCL fails.
std::unique_ptr<DeviceLink> make_nccl_link(Transport& headers, int rank, int world);

}  // namespace lockstep
