#include "runtime/transport/device/round_watch.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "core/error.h"

namespace lockstep {
namespace {

constexpr std::chrono::milliseconds kPeriod{50};

}  // namespace

RoundWatch::RoundWatch(DeviceLink& link, std::chrono::milliseconds timeout) : link_(link), timeout_(timeout) {
  thread_ = std::thread([this] { run(); });
}

RoundWatch::~RoundWatch() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void RoundWatch::begin(const MessageHeader& header, std::vector<int> peers) {
  const std::lock_guard lock(mutex_);
  rounds_.push_back({header, std::move(peers), Clock::now()});
  if (rounds_.size() == 1) changed_.notify_one();
}

void RoundWatch::set_timeout(std::chrono::milliseconds timeout) {
  const std::lock_guard lock(mutex_);
  timeout_ = timeout;
}

void RoundWatch::check() const {
  if (!has_failed_) return;
  const std::lock_guard lock(mutex_);
  fail<TransportError>("{}", failure_);
}

/// While nothing is under way, or all is lost, it sleeps.
void RoundWatch::run() {
  std::unique_lock lock(mutex_);
  while (!ending_) {
    if (rounds_.empty() || has_failed_) {
      changed_.wait(lock);
    } else if (!changed_.wait_for(lock, kPeriod, [this] { return ending_; })) {
      look(lock);
    }
  }
}

/// The link is asked, and aborted, without the lock: it may take its time.
void RoundWatch::look(std::unique_lock<std::mutex>& lock) {
  lock.unlock();
  std::string problem;
  uint64_t ended = 0;
  try {
    ended = link_.ended_rounds();
  } catch (const std::exception& error) {
    problem = error.what();
  }
  lock.lock();
  if (problem.empty()) forget(ended);
  if (rounds_.empty()) return;
  const bool is_late = Clock::now() - rounds_.front().since >= timeout_;
  if (problem.empty() && !is_late) return;
  give_up(problem.empty() ? "it has not ended, a rank of its group has died or stalls" : problem);
  lock.unlock();
  link_.abort();
  lock.lock();
}

void RoundWatch::forget(uint64_t ended) {
  if (ended == ended_) return;
  for (; ended_ < ended && !rounds_.empty(); ++ended_) rounds_.pop_front();
  if (!rounds_.empty()) rounds_.front().since = Clock::now();
}

void RoundWatch::give_up(const std::string& why) {
  const auto& round = rounds_.front();
  const std::chrono::duration<double> spent = Clock::now() - round.since;
  failure_ = fmt::format(
      "the devices' exchange of {} with ranks {} was given up after {:.1f} s: {} (which one it waits for cannot be "
      "known from here)",
      round.header.text(), fmt::join(round.peers, ", "), spent.count(), why);
  has_failed_ = true;
}

}  // namespace lockstep
