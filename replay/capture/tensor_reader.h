#pragma once
#include <ATen/core/Tensor.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <span>

#include "core/digest/digest.h"

namespace lockstep::replay {

/// Takes digests and copies of tensors while training goes on.
class TensorReader {
 public:
  enum class Wanted { kDigest, kDigestAndBytes };
  /// Gets tensor_digest() of the tensor's bytes in row-major order, and these bytes, or none if they are not wanted.
  using Work = std::function<void(const Digest&, std::span<const std::byte>)>;

  virtual ~TensorReader() = default;

  /// The work runs on any thread, in the order of calls, before the next finish() returns.
  virtual void read(at::Tensor tensor, Wanted wanted, Work work) = 0;

  /// To be called before a tensor's memory is written to: returns when that changes nothing that is to be read.
  virtual void before_write(const at::Tensor& tensor) = 0;

  /// Returns when all work is done. Throws what work threw; then the rest was dropped.
  virtual void finish() = 0;
};

/// A reader of tensors that lie on such a device. `limit_bytes`: how much memory may wait to be read, or be kept for
/// copies. Throws BadInput for a device that this build does not know.
std::unique_ptr<TensorReader> make_tensor_reader(c10::DeviceType device, std::size_t limit_bytes);

}  // namespace lockstep::replay
