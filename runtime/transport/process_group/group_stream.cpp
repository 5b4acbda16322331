#include "runtime/transport/process_group/group_stream.h"

#include <ATen/Functions.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "core/error.h"
#include "runtime/transport/process_group/plain_reason.h"

namespace lockstep {
namespace {

constexpr int kTag = 0;
constexpr size_t kAhead = 4;                      ///< blocks under way, each way
constexpr std::chrono::hours kForever{24 * 365};  ///< nothing is waited for here that another thread does not give up

/// A block begins with how many bytes there are.
using Count = uint64_t;
constexpr size_t kHead = sizeof(Count), kMostOfBlock = size_t{1} << 18;

Count count_of(const at::Tensor& block) {
  Count count = 0;
  std::memcpy(&count, block.const_data_ptr(), kHead);
  return count;
}

at::Tensor empty_block(size_t count) { return at::empty({static_cast<int64_t>(kHead + count)}, at::kByte); }

/// As much of these as one block takes.
at::Tensor block_of(ConstSpans from) {
  size_t count = 0;
  for (const auto& span : from) count += span.size();
  count = std::min(count, kMostOfBlock);
  auto block = empty_block(count);
  auto* to = static_cast<std::byte*>(block.mutable_data_ptr());
  std::memcpy(to, &count, kHead);
  size_t done = 0;
  for (const auto& span : from) {
    const auto part = std::min(span.size(), count - done);
    if (part > 0) std::memcpy(to + kHead + done, span.data(), part);
    done += part;
  }
  return block;
}

}  // namespace

std::chrono::steady_clock::time_point SharedGroup::farewells() {
  constexpr std::chrono::seconds kLast{1};
  if (!end_) {
    for (auto* stream : streams_) stream->say_farewell();
    end_ = std::chrono::steady_clock::now() + kLast;
  }
  return *end_;
}

GroupStream::GroupStream(std::shared_ptr<SharedGroup> shared, int other)
    : shared_(std::move(shared)), other_(other), news_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  LOCKSTEP_CHECK(news_.is_open());
  shared_->add(*this);
  try {
    sender_ = std::thread([this] { send_all(); });
    receiver_ = std::thread([this] { receive_all(); });
  } catch (const std::exception& error) {
    stop(std::chrono::steady_clock::now());
    fail<TransportError>("two threads for rank {} cannot be started: {}", other_, error.what());
  }
}

GroupStream::~GroupStream() { stop(shared_->farewells()); }

void GroupStream::stop(std::chrono::steady_clock::time_point end) {
  {
    std::unique_lock lock(mutex_);
    changed_.wait_until(lock, end, [&] { return (unsent_.empty() && sends_.empty() && heard_farewell_) || failed_; });
    stops_ = true;
    for (const auto* queue : {&sends_, &receives_})
      for (const auto& posted : *queue) posted.work->abort();
  }
  changed_.notify_all();
  for (auto* thread : {&sender_, &receiver_})
    if (thread->joinable()) thread->join();
  shared_->remove(*this);
}

void GroupStream::ring() const {
  const uint64_t one = 1;
  static_cast<void>(!::write(news_.get(), &one, sizeof one));  // full: it rings already
}

void GroupStream::say_farewell() {
  const std::lock_guard lock(mutex_);
  post_farewell();
}

/// Behind all else that is to be sent. REQUIRES: the mutex is held.
void GroupStream::post_farewell() try {
  if (std::exchange(says_farewell_, true)) return;
  unsent_.push_back(block_of({}));
  post_sends();
} catch (const std::exception& error) {  // there is no memory
  fail_by(plain_reason(error));
}

/// It was closed by the other side.
void GroupStream::hear_farewell() {
  const std::lock_guard lock(mutex_);
  if (why_.empty()) why_ = "it was closed by the other side";
  ended_ = true, heard_farewell_ = true;
  post_farewell();
  changed_.notify_all();
  ring();
}

/// Gloo's calls return at once. REQUIRES: the mutex is held.
void GroupStream::post_receive() {
  std::vector<at::Tensor> one{empty_block(kMostOfBlock)};
  const std::lock_guard lock(shared_->calls);
  receives_.push_back({one[0], shared_->group->recv(one, other_, kTag)});
}

/// As many as may be under way; the call itself fails where the connection is closed. REQUIRES: the mutex is held.
void GroupStream::post_sends() try {
  while (!unsent_.empty() && sends_.size() < kAhead && !failed_) {
    std::vector<at::Tensor> one{std::move(unsent_.front())};
    unsent_.pop_front();
    const std::lock_guard lock(shared_->calls);
    sends_.push_back({one[0], shared_->group->send(one, other_, kTag)});
  }
  changed_.notify_all();
} catch (const std::exception& error) {
  fail_by(plain_reason(error));
}

/// REQUIRES: the mutex is held.
void GroupStream::fail_by(std::string why) {
  if (why_.empty()) why_ = std::move(why);
  ended_ = true, failed_ = true;
  changed_.notify_all();
  ring();
}

at::Tensor GroupStream::wait(Queue& queue) {
  Posted oldest;
  {
    const std::lock_guard lock(mutex_);
    oldest = queue.front();
  }
  const bool done = oldest.work->wait(kForever);
  const std::lock_guard lock(mutex_);
  queue.pop_front();
  return done && !stops_ ? oldest.block : at::Tensor();
}

void GroupStream::send_all() try {
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return !sends_.empty() || stops_ || failed_; });
      if (stops_ || failed_) return;
    }
    const auto sent = wait(sends_);
    if (!sent.defined()) return;
    {
      const std::lock_guard lock(mutex_);
      unsent_bytes_ -= count_of(sent);
      post_sends();
    }
    ring();
  }
} catch (const std::exception& error) {
  const std::lock_guard lock(mutex_);
  fail_by(plain_reason(error));
}

void GroupStream::receive_all() try {
  {
    const std::lock_guard lock(mutex_);
    if (stops_) return;
    for (size_t i = 0; i < kAhead; ++i) post_receive();
  }
  for (;;) {
    const auto block = wait(receives_);
    if (!block.defined()) return;
    const auto count = count_of(block);
    if (count == 0) return hear_farewell();
    if (count > kMostOfBlock) fail<TransportError>("it sent what is no block");
    if (!add_received(block)) return;
  }
} catch (const std::exception& error) {
  const std::lock_guard lock(mutex_);
  fail_by(plain_reason(error));
}

/// Whether more may come: once there is room for it.
bool GroupStream::add_received(at::Tensor block) {
  std::unique_lock lock(mutex_);
  received_bytes_ += count_of(block);
  received_.push_back(std::move(block));
  ring();
  changed_.wait(lock, [&] { return received_bytes_ < kMostBytes || says_farewell_ || stops_; });
  if (!stops_) post_receive();
  return !stops_;
}

size_t GroupStream::send(ConstSpans from) {
  const std::lock_guard lock(mutex_);
  if (ended_) close(why_);
  const bool has_bytes = std::ranges::any_of(from, [](const ConstSpan& span) { return !span.empty(); });
  if (ended_ || says_farewell_ || !has_bytes || unsent_bytes_ >= kMostBytes) return 0;
  const auto count = count_of(unsent_.emplace_back(block_of(from)));
  unsent_bytes_ += count;
  post_sends();
  return count;
}

size_t GroupStream::receive(MutableSpans to) {
  const std::lock_guard lock(mutex_);
  size_t total = 0;
  for (auto span : to)
    while (!span.empty() && !received_.empty()) {
      const auto& block = received_.front();
      const auto part = std::min<size_t>(span.size(), count_of(block) - taken_);
      std::memcpy(span.data(), static_cast<const std::byte*>(block.const_data_ptr()) + kHead + taken_, part);
      span = span.subspan(part);
      taken_ += part, total += part;
      if (taken_ == count_of(block)) received_.pop_front(), taken_ = 0;
    }
  received_bytes_ -= total;
  if (total > 0) changed_.notify_all();
  if (ended_ && received_.empty()) close(why_);
  return total;
}

pollfd GroupStream::asleep(bool /*to_receive*/, bool /*to_send*/) { return {news_.get(), POLLIN, 0}; }

void GroupStream::awake(short events) {
  uint64_t rung = 0;
  if (events & POLLIN) static_cast<void>(!::read(news_.get(), &rung, sizeof rung));
}

}  // namespace lockstep
