#pragma once
#include <fmt/ranges.h>

#include <condition_variable>
#include <mutex>
#include <random>
#include <set>

#include "core/error.h"
#include "runtime/transport/simulated.h"
#include "runtime/transport/wrapper.h"

/// Ranks that are threads of one simulated run, of which one runs at a time: a seed says which, so that the same seed
/// gives the same events in the same order.
namespace lockstep::testing {

class Turns {
 public:
  Turns(int ranks, uint64_t seed) : chosen_(static_cast<size_t>(ranks)), random_(seed) {
    for (int rank = 0; rank < ranks; ++rank) ready_.push_back(rank);
    choose();
  }

  /// Waits for the rank's first turn.
  void begin(int rank) {
    std::unique_lock lock(mutex_);
    wait(lock, rank);
  }
  /// Lets any rank run, and returns when it is this one's turn again.
  void pass(int rank) {
    std::unique_lock lock(mutex_);
    choose();
    if (running_ != rank) wait(lock, rank);
  }
  /// The rank has ended.
  void end(int rank) {
    const std::lock_guard lock(mutex_);
    std::erase(ready_, rank);
    idle_.erase(rank);
    choose();
  }

  /// Something happened that may be what a rank waits for.
  void note_event() { idle_.clear(); }
  /// This rank has nothing to do. Whether all others have nothing to do either: nothing will happen any more.
  bool is_stuck(int rank) {
    idle_.insert(rank);
    return idle_.size() >= ready_.size();
  }

 private:
  void choose() {
    running_ = ready_.empty() ? -1 : ready_[random_() % ready_.size()];
    if (running_ >= 0) chosen_[static_cast<size_t>(running_)].notify_one();
  }
  void wait(std::unique_lock<std::mutex>& lock, int rank) {
    chosen_[static_cast<size_t>(rank)].wait(lock, [&] { return running_ == rank; });
  }

  std::mutex mutex_;
  std::vector<std::condition_variable> chosen_;  ///< per rank
  std::mt19937_64 random_;
  std::vector<int> ready_;
  std::set<int> idle_;
  int running_ = -1;
};

/// Messages that arrive in an order that a seed decides, one by each progress(); all of it goes into a log. progress()
/// never waits.
class LoggedMessages final : public TransportWrapper {
 public:
  LoggedMessages(std::shared_ptr<SimulatedTransport> simulated, Turns& turns)
      : TransportWrapper(simulated), simulated_(*simulated), turns_(turns) {}

  void post(Message message) override {
    log(fmt::format("{} sends {} {}", message.source, message.destination, message.header.text()));
    note_event();
    inner_->post(std::move(message));
  }
  void progress() override {
    const auto pair = simulated_.deliver();
    if (!pair) return;
    log(fmt::format("{} reaches {}", pair->first, pair->second));
    note_event();
  }

  void log(const std::string& line) { log_ += line + "\n"; }
  const std::string& text() const { return log_; }
  int events() const { return events_; }

 private:
  void note_event() {
    turns_.note_event();
    ++events_;
  }

  SimulatedTransport& simulated_;
  Turns& turns_;
  std::string log_;
  int events_ = 0;
};

/// One rank's end: it passes its turn on when it has to wait.
class TurnTransport final : public TransportWrapper {
 public:
  /// `messages` is what `inner` ends in.
  TurnTransport(std::shared_ptr<Transport> inner, const LoggedMessages& messages, Turns& turns, int rank)
      : TransportWrapper(std::move(inner)), messages_(messages), turns_(turns), rank_(rank) {}

  std::optional<MessageHeader> arrived(int source, int destination) override {
    auto header = inner_->arrived(source, destination);
    if (!header) missed_.insert(source);
    return header;
  }
  void progress() override {
    const int before = messages_.events();
    inner_->progress();
    if (messages_.events() == before && turns_.is_stuck(rank_))
      fail<TransportError>("rank {} waits for rank {} and no message is in flight", rank_, fmt::join(missed_, ", "));
    missed_.clear();
    turns_.pass(rank_);
  }

 private:
  const LoggedMessages& messages_;
  Turns& turns_;
  int rank_;
  std::set<int> missed_;
};

}  // namespace lockstep::testing
