#pragma once
#include <c10/core/Stream.h>

#include <deque>
#include <functional>
#include <map>
#include <mutex>

namespace lockstep::testing {

/// Streams of a pretended GPU: what is given to the default one is done at once, what to others as late as may be, when
/// an event that was recorded behind it is waited for. So a wait for them that is missing shows. That they wait for the
/// default stream is known by its events.
class PretendedStreams {
 public:
  /// Behind what a stream has been given so far.
  struct Event {
    c10::StreamId stream = 0;
    size_t given = 0;
  };

  static PretendedStreams& instance() {
    static auto* streams = new PretendedStreams;
    return *streams;
  }

  c10::StreamId make() {
    const std::lock_guard lock(mutex_);
    return ++made_;
  }

  /// Something of the default stream.
  void work() {
    const std::lock_guard lock(mutex_);
    ++queues_[0].given;
  }

  /// Whether the current stream waits for all that the default one was given.
  bool has_seen_default() {
    const std::lock_guard lock(mutex_);
    return queues_[current()].seen_default == queues_[0].given;
  }

  /// Of this thread; 0 is the default stream.
  static c10::StreamId& current() {
    thread_local c10::StreamId stream = 0;
    return stream;
  }

  /// Now, or on the current stream later.
  void give(std::function<void()> work) { give(current(), std::move(work)); }

  Event record(c10::StreamId stream) {
    const std::lock_guard lock(mutex_);
    return {stream, queues_[stream].given};
  }

  /// What `stream` is given from here on begins after the event.
  void block(const Event& event, c10::StreamId stream) {
    const std::lock_guard lock(mutex_);
    if (event.stream == 0) return void(queues_[stream].seen_default = event.given);
    give(stream, [this, event] { reach(event); });
  }

  void reach(const Event& event) {
    const std::lock_guard lock(mutex_);
    if (event.stream == 0) return;
    auto& queue = queues_[event.stream];
    while (queue.done < event.given) {
      const auto work = std::move(queue.waiting.front());
      queue.waiting.pop_front(), ++queue.done;
      work();
    }
  }

  void reach_all() {
    for (c10::StreamId stream = 1; stream <= made_; ++stream) reach(record(stream));
  }

 private:
  struct Queue {
    std::deque<std::function<void()>> waiting;
    size_t given = 0, done = 0, seen_default = 0;
  };

  void give(c10::StreamId stream, std::function<void()> work) {
    if (stream == 0) return work();
    const std::lock_guard lock(mutex_);
    queues_[stream].waiting.push_back(std::move(work)), ++queues_[stream].given;
  }

  std::recursive_mutex mutex_;
  c10::StreamId made_ = 0;
  std::map<c10::StreamId, Queue> queues_;
};

}  // namespace lockstep::testing
