#include "trainer/measure/device_speed.h"

#include <ATen/Functions.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "runtime/plain/plain_tensors.h"

namespace lockstep::trainer {
namespace {

/// Products of two matrices on a device, timed.
class Products {
 public:
  Products(const c10::Device& device, c10::ScalarType dtype, int64_t size)
      : device_(device),
        a_(at::rand({size, size}, at::device(device).dtype(dtype))),
        b_(at::rand({size, size}, at::device(device).dtype(dtype))) {}

  /// Of one, the mean over so many.
  double seconds(int64_t times) const {
    wait();
    const auto start = std::chrono::steady_clock::now();
    for (int64_t i = 0; i < times; ++i) at::mm(a_, b_);
    wait();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / static_cast<double>(times);
  }

 private:
  /// LibTorch has no such wait on a CPU, whose calls return when they are done.
  void wait() const {
    if (device_.is_cpu()) return;
    const c10::impl::VirtualGuardImpl devices(device_.type());
    devices.synchronizeDevice(device_.has_index() ? device_.index() : devices.getDevice().index());
  }

  c10::Device device_;
  at::Tensor a_, b_;
};

}  // namespace

double device_product_speed(const c10::Device& device, c10::ScalarType dtype) {
  constexpr int64_t kSmallest = 512, kLargest = 8192;
  constexpr double kEnough = 1e-3, kMeasured = 0.05;
  const PlainTensors guard;
  for (int64_t size = kSmallest;; size *= 2) {
    const Products products(device, dtype, size);
    products.seconds(1);  // the first one loads what it runs
    const double once = products.seconds(1);
    if (once < kEnough && size < kLargest) continue;
    const auto times = std::max<int64_t>(1, std::llround(kMeasured / once));
    return 2 * std::pow(static_cast<double>(size), 3) / products.seconds(times);
  }
}

}  // namespace lockstep::trainer
