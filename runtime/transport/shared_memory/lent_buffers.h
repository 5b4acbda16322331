#pragma once
#include <cstdint>
#include <deque>

namespace lockstep {

/// Numbers for payloads that we read where they lie, in the order in which they were lent. The lender hears how many,
/// from the first, are not read any more: later ones may have been dropped before earlier ones.
class LentBuffers {
 public:
  uint64_t open() {
    open_.push_back(true);
    return first_ + open_.size() - 1;
  }
  void close(uint64_t number) {
    open_[number - first_] = false;
    for (; !open_.empty() && !open_.front(); ++first_) open_.pop_front();
  }
  /// So many are not read any more.
  uint64_t closed() const { return first_; }

 private:
  uint64_t first_ = 0;  ///< that may be open
  std::deque<bool> open_;
};

}  // namespace lockstep
