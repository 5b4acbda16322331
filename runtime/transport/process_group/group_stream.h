#pragma once
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "core/files/file_descriptor.h"
#include "runtime/transport/process_group/gloo_group.h"
#include "runtime/transport/stream.h"

namespace lockstep {

class GroupStream;

/// A process group of one rank, whose calls are made one at a time. Streams share it: it ends with the last of them.
class SharedGroup {
 public:
  explicit SharedGroup(ProcessGroup made) : group(std::move(made)) {}

  const ProcessGroup group;
  std::mutex calls;

  void add(GroupStream& stream) { streams_.push_back(&stream); }
  void remove(GroupStream& stream) { std::erase(streams_, &stream); }
  /// One of the streams ends, and with it all: each says its farewell now. Until when answers are waited for.
  std::chrono::steady_clock::time_point farewells();

 private:
  std::vector<GroupStream*> streams_;
  std::optional<std::chrono::steady_clock::time_point> end_;
};

/// A stream to another rank over a c10d process group, point to point.
///
/// The group's calls can only be waited for, so one thread sends and one receives; both copy. Bytes travel as blocks,
/// which say how many there are. Receives are posted ahead: Gloo sends what is awaited at once, and asks before all
/// else. The destructor sends what is left and a block of no bytes, the farewell, which the other side answers: a
/// connection that is closed while something is on its way loses what was not read. All streams of a group end
/// together, within a second.
class GroupStream final : public Stream {
 public:
  GroupStream(std::shared_ptr<SharedGroup> shared, int other);
  ~GroupStream() override;

  size_t send(ConstSpans from) override;
  size_t receive(MutableSpans to) override;
  bool can_receive() const override { return received_bytes_ > 0 || ends(); }
  bool can_send() const override { return unsent_bytes_ < kMostBytes || ends(); }
  bool is_memory() const override { return false; }
  /// Nothing more is sent behind it.
  void say_farewell();
  pollfd asleep(bool to_receive, bool to_send) override;
  void awake(short events) override;

 private:
  using Work = c10::intrusive_ptr<c10d::Work>;
  static constexpr size_t kMostBytes = size_t{1} << 20;  ///< that wait on one side

  /// Whether it has ended, and the rank does not know yet.
  bool ends() const { return ended_ && closed().empty(); }
  void send_all();
  void receive_all();
  /// A block under way.
  struct Posted {
    at::Tensor block;
    Work work = {};
  };
  using Queue = std::deque<Posted>;

  void post_receive();
  void post_sends();
  /// The block of the oldest that was posted, once it is done; nothing where it was given up.
  at::Tensor wait(Queue& queue);
  bool add_received(at::Tensor block);
  void fail_by(std::string why);
  void hear_farewell();
  void post_farewell();
  void ring() const;
  void stop(std::chrono::steady_clock::time_point end);

  std::shared_ptr<SharedGroup> shared_;
  int other_;
  FileDescriptor news_;  ///< an eventfd
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<at::Tensor> unsent_, received_;  ///< blocks; what is unsent is not posted yet
  size_t taken_ = 0;                          ///< of the first that was received
  std::atomic<size_t> unsent_bytes_ = 0, received_bytes_ = 0;
  std::atomic<bool> ended_ = false;  ///< `why_` says why
  bool says_farewell_ = false, heard_farewell_ = false, failed_ = false, stops_ = false;
  std::string why_;
  Queue sends_, receives_;
  std::thread sender_, receiver_;
};

}  // namespace lockstep
