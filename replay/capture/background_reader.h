#pragma once
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "replay/capture/tensor_reader.h"

namespace lockstep::replay {

/// Reads the CPU's tensors on a thread of its own, while training goes on. It keeps their memory alive until then; that
/// nobody writes to it is the caller's part: before_write().
class BackgroundReader final : public TensorReader {
 public:
  /// read() waits while more than `limit_bytes` wait.
  explicit BackgroundReader(std::size_t limit_bytes);
  /// Does what waits.
  ~BackgroundReader() override;
  BackgroundReader(const BackgroundReader&) = delete;
  BackgroundReader& operator=(const BackgroundReader&) = delete;

  /// The work runs on the thread.
  void read(at::Tensor tensor, Wanted wanted, Work work) override;
  /// Returns when nothing waits that lies in the tensor's memory.
  void before_write(const at::Tensor& tensor) override;
  void finish() override;

 private:
  struct Waiting {
    at::Tensor tensor;
    Wanted wanted;
    Work work;
  };

  void run();
  void run_first(std::unique_lock<std::mutex>& lock);
  std::exception_ptr error_of(const Waiting& first);
  void wait_until(std::unique_lock<std::mutex>& lock, const std::function<bool()>& condition);
  std::span<const std::byte> bytes_in_order(const at::Tensor& tensor);

  const std::size_t limit_bytes_;
  std::vector<std::byte> copy_;  ///< the thread's: of what is not contiguous

  std::mutex mutex_;
  std::condition_variable has_work_, has_read_;
  std::deque<Waiting> waiting_;  // guarded by mutex_, as all below; the front is being read
  std::size_t waiting_bytes_ = 0;
  bool in_a_hurry_ = false;  ///< somebody waits for the thread
  bool ending_ = false;
  std::exception_ptr error_;
  std::thread thread_;  // last: everything is there when it starts
};

}  // namespace lockstep::replay
