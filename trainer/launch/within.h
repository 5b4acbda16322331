#pragma once
#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "core/error.h"

namespace lockstep::trainer {

/// What `work` returns or throws, if it ends within `most`; otherwise a TransportError: "`waiting` ...". For calls of a
/// library that wait for a peer without a limit. Such a call goes on in a thread of its own until the process ends, so
/// `work` has to own all that it uses.
template <class Work>
auto within(std::chrono::milliseconds most, const std::string& waiting, Work work) {
  using Task = std::packaged_task<decltype(work())()>;
  const auto task = std::make_shared<Task>(std::move(work));
  auto result = task->get_future();
  std::thread([task] { (*task)(); }).detach();
  if (result.wait_for(most) != std::future_status::ready)
    fail<TransportError>("{} for {} s (comm.init_timeout_seconds), and got no answer", waiting,
                         std::chrono::duration_cast<std::chrono::seconds>(most).count());
  return result.get();
}

}  // namespace lockstep::trainer
