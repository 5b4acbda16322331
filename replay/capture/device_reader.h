#pragma once
#include <exception>
#include <vector>

#include "replay/capture/device_queue.h"
#include "replay/capture/tensor_reader.h"

namespace lockstep::replay {

/// Reads tensors in a device's memory: the device itself takes digests of their pieces, and copies what is to be kept,
/// in the order of its work. The host waits for it when a batch is full, and in finish(); then it does the work.
class DeviceReader final : public TensorReader {
 public:
  /// `limit_bytes`: of copies in a batch. One tensor may have more.
  DeviceReader(c10::Device device, std::unique_ptr<DeviceQueue> queue, std::size_t limit_bytes);

  void read(at::Tensor tensor, Wanted wanted, Work work) override;
  /// Nothing: the device writes later than it reads.
  void before_write(const at::Tensor&) override {}
  void finish() override;

 private:
  /// Parts of a batch: digests of pieces, and bytes.
  struct Amount {
    std::size_t pieces = 0, bytes = 0;
  };
  struct Waiting {
    Work work;
    Amount before, own;
  };

  void require_room(const Amount& more);
  void end_batch();
  void run(const Waiting& waiting);

  const c10::Device device_;
  const std::unique_ptr<DeviceQueue> queue_;
  Amount room_;   ///< what the queue has
  Amount batch_;  ///< what of it is taken
  std::vector<Waiting> waiting_;
  std::exception_ptr error_;
};

}  // namespace lockstep::replay
