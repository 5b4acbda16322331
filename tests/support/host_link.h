#pragma once
#include <atomic>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>

#include "core/error.h"
#include "runtime/transport/device/device_link.h"

/// Plays the part of devices and of what links them, with host memory, for ranks that are threads.
namespace lockstep::testing {

/// What is on its way between the ranks of one process.
struct Mail {
  std::mutex mutex;
  std::condition_variable changed;
  std::map<std::pair<int, int>, std::deque<Bytes>> parts;
};

/// Does what NCCL's send and receive do: a round ends when all its bytes are there, and rounds queue up.
class HostLink final : public DeviceLink {
 public:
  HostLink(std::shared_ptr<Mail> mail, int rank, int& rounds) : mail_(std::move(mail)), rank_(rank), rounds_(rounds) {}

  void exchange(std::span<const DeviceSend> sends, std::span<const DeviceReceive> receives) override {
    ++rounds_;
    std::unique_lock lock(mail_->mutex);
    for (const auto& [peer, parts] : sends)
      for (const auto& part : parts)
        if (!part.empty()) mail_->parts[{rank_, peer}].emplace_back(part.begin(), part.end());
    mail_->changed.notify_all();
    for (const auto& [peer, parts] : receives)
      for (const auto& part : parts)
        if (!part.empty()) take(lock, peer, part);
    ++ended_;
  }
  uint64_t ended_rounds() override { return ended_; }
  void abort() override {}

 private:
  void take(std::unique_lock<std::mutex>& lock, int peer, MutableSpan to) {
    auto& from = mail_->parts[{peer, rank_}];
    const bool came = mail_->changed.wait_for(lock, std::chrono::seconds{20}, [&] { return !from.empty(); });
    LOCKSTEP_CHECK(came, "rank {} waits for bytes of rank {}", rank_, peer);
    LOCKSTEP_CHECK_EQ(from.front().size(), to.size());
    std::copy(from.front().begin(), from.front().end(), to.begin());
    from.pop_front();
  }

  std::shared_ptr<Mail> mail_;
  int rank_;
  int& rounds_;
  std::atomic<uint64_t> ended_ = 0;
};

}  // namespace lockstep::testing
