#include "runtime/kernels/on_gpu/state_visit.h"

#include <ATen/Functions.h>
#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <deque>
#include <optional>
#include <vector>

namespace lockstep::on_gpu {
namespace {

using at::Tensor;

constexpr size_t kMostInFlight = 2;

/// The streams of one thread's GPU, and what is on its way to the host.
class Lanes {
 public:
  static std::optional<Lanes>& of_this_thread_if_any() {
    thread_local std::optional<Lanes> lanes;
    return lanes;
  }

  static Lanes& of_this_thread() {
    auto& lanes = of_this_thread_if_any();
    return lanes ? *lanes : lanes.emplace();
  }

  Lanes() : guard_(c10::kCUDA), in_(new_stream()), out_(new_stream()) {}

  std::vector<Tensor> bring(const std::vector<Tensor>& state) {
    while (flying_.size() >= kMostInFlight) land();
    std::vector<Tensor> there;
    {
      const c10::StreamGuard stream(in_);
      for (const auto& each : state) {
        there.push_back(at::empty(each.sizes(), each.options().device(c10::kCUDA)));
        there.back().copy_(each, /*non_blocking=*/true);
      }
    }
    wait(in_, computing());
    return there;
  }

  void take_back(const std::vector<Tensor>& state, std::vector<Tensor> there) {
    wait(computing(), out_);
    {
      const c10::StreamGuard stream(out_);
      for (size_t i = 0; i < state.size(); ++i) Tensor(state[i]).copy_(there[i], /*non_blocking=*/true);
    }
    flying_.push_back({c10::Event(c10::kCUDA), std::move(there)});
    flying_.back().landed.record(out_);
  }

  void land_all() {
    while (!flying_.empty()) land();
  }

 private:
  /// Buffers are free once the host knows that they were read.
  struct Flight {
    c10::Event landed;
    std::vector<Tensor> there;
  };

  c10::Stream new_stream() const { return guard_.getStreamFromGlobalPool(guard_.getDevice()); }
  c10::Stream computing() const { return guard_.getStream(guard_.getDevice()); }

  /// What `later` gets from here on begins after what `earlier` has.
  static void wait(const c10::Stream& earlier, const c10::Stream& later) {
    c10::Event event(c10::kCUDA);
    event.record(earlier);
    event.block(later);
  }

  void land() {
    flying_.front().landed.synchronize();
    flying_.pop_front();
  }

  c10::impl::VirtualGuardImpl guard_;
  c10::Stream in_, out_;
  std::deque<Flight> flying_;
};

}  // namespace

void update_visiting_state(const Tensor& parameter, const Tensor& gradient, const Tensor& mean, const Tensor& square,
                           const StateUpdate& update, int64_t most) {
  const bool has_parts = parameter.is_contiguous() && mean.is_contiguous() && square.is_contiguous();
  const int64_t count = parameter.numel(), part = has_parts ? most : std::max<int64_t>(count, 1);
  const auto flat = [&](const Tensor& tensor) { return has_parts ? tensor.reshape({-1}) : tensor; };
  const auto p = flat(parameter), g = flat(gradient), m = flat(mean), s = flat(square);
  auto& lanes = Lanes::of_this_thread();
  for (int64_t start = 0; start < count; start += part) {
    const auto cut = [&](const Tensor& tensor) {
      return has_parts ? tensor.narrow(0, start, std::min(part, count - start)) : tensor;
    };
    const std::vector<Tensor> state{cut(m), cut(s)};
    auto there = lanes.bring(state);
    update(cut(p), cut(g), there[0], there[1]);
    lanes.take_back(state, std::move(there));
  }
}

void wait_for_state() {
  if (auto& lanes = Lanes::of_this_thread_if_any()) lanes->land_all();
}

StateScope::~StateScope() {
  try {
    wait_for_state();
  } catch (...) {  // of a GPU that fails: the error that ends the scope says more
  }
}

}  // namespace lockstep::on_gpu
