#include "replay/capture/background_reader.h"

#include <ATen/Functions.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <utility>

#include "core/digest/tensor_digest.h"
#include "runtime/plain/tensor_bytes.h"

namespace lockstep::replay {
namespace {

/// Waking a thread costs ten microseconds: it is woken for this much.
constexpr std::size_t kWorthWaking = 8 << 20;

}  // namespace

BackgroundReader::BackgroundReader(std::size_t limit_bytes) : limit_bytes_(limit_bytes) {
  thread_ = std::thread([this] { run(); });
}

BackgroundReader::~BackgroundReader() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  has_work_.notify_one();
  thread_.join();
}

void BackgroundReader::read(at::Tensor tensor, Wanted wanted, Work work) {
  std::unique_lock lock(mutex_);
  if (waiting_bytes_ > limit_bytes_) wait_until(lock, [this] { return waiting_bytes_ <= limit_bytes_; });
  waiting_bytes_ += tensor.nbytes();
  waiting_.push_back({std::move(tensor), wanted, std::move(work)});
  if (waiting_bytes_ >= kWorthWaking) has_work_.notify_one();
}

void BackgroundReader::before_write(const at::Tensor& tensor) {
  std::unique_lock lock(mutex_);
  const auto shares = [&](const Waiting& one) { return one.tensor.storage().is_alias_of(tensor.storage()); };
  const auto is_free = [&] { return std::none_of(waiting_.begin(), waiting_.end(), shares); };
  if (!is_free()) wait_until(lock, is_free);
}

void BackgroundReader::finish() {
  std::unique_lock lock(mutex_);
  wait_until(lock, [this] { return waiting_.empty(); });
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

void BackgroundReader::wait_until(std::unique_lock<std::mutex>& lock, const std::function<bool()>& condition) {
  in_a_hurry_ = true;
  has_work_.notify_one();
  has_read_.wait(lock, condition);
  in_a_hurry_ = false;
}

void BackgroundReader::run() {
  const c10::ParallelGuard no_more_threads(true);
  std::unique_lock lock(mutex_);
  const auto is_due = [this] {
    return ending_ || (!waiting_.empty() && (in_a_hurry_ || waiting_bytes_ >= kWorthWaking));
  };
  while (has_work_.wait(lock, is_due), !waiting_.empty())
    while (!waiting_.empty()) run_first(lock);
}

void BackgroundReader::run_first(std::unique_lock<std::mutex>& lock) {
  auto& first = waiting_.front();  // stays where it is while others are pushed
  const bool drops = error_ != nullptr;
  lock.unlock();
  const auto error = drops ? nullptr : error_of(first);
  lock.lock();
  if (error) error_ = error;
  waiting_bytes_ -= first.tensor.nbytes();
  auto done = std::move(first);
  waiting_.pop_front();
  if (in_a_hurry_) has_read_.notify_one();
  lock.unlock();
  done = {};  // memory may go back to the system here
  lock.lock();
}

std::exception_ptr BackgroundReader::error_of(const Waiting& first) {
  try {
    const auto bytes = bytes_in_order(first.tensor);
    first.work(tensor_digest(bytes), bytes.first(first.wanted == Wanted::kDigest ? 0 : bytes.size()));
    return nullptr;
  } catch (...) {
    return std::current_exception();
  }
}

std::span<const std::byte> BackgroundReader::bytes_in_order(const at::Tensor& tensor) {
  if (tensor.is_contiguous()) return bytes_of(tensor);
  copy_.resize(std::max(copy_.size(), tensor.nbytes()));
  at::from_blob(copy_.data(), tensor.sizes(), tensor.options()).copy_(tensor);
  return std::span<const std::byte>(copy_).first(tensor.nbytes());
}

}  // namespace lockstep::replay
