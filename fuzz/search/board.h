#pragma once
#include <atomic>
#include <chrono>
#include <limits>
#include <memory>
#include <span>

#include "fuzz/search/search.h"

/// What workers and their parent write where the others see it.
namespace lockstep::fuzz {

using Clock = std::chrono::steady_clock;

class Board {
 public:
  struct Tally {
    std::atomic<int64_t> cases, left_out, compared, refused;
    std::atomic<int64_t> first_failed;  ///< the number of the case
  };
  struct Worker {
    std::atomic<int64_t> turn;  ///< of the case that it runs
    std::atomic<int64_t> since;
  };

  Board(size_t checks, size_t workers);
  ~Board();
  Board(const Board&) = delete;
  Board& operator=(const Board&) = delete;

  std::span<Tally> tallies() { return tallies_; }
  Worker& worker(size_t index) { return workers_[index]; }
  std::atomic<uint64_t>& digest() { return *digest_; }
  std::atomic<bool>& stop() { return *stop_; }

  int64_t cases() const;

 private:
  void* memory_ = nullptr;
  size_t bytes_ = 0;
  std::span<Tally> tallies_;
  std::span<Worker> workers_;
  std::atomic<uint64_t>* digest_ = nullptr;
  std::atomic<bool>* stop_ = nullptr;
};

/// Lowers `value` to `candidate`; whether it did.
bool lower(std::atomic<int64_t>& value, int64_t candidate);

/// Whose turn the `turn`-th case is: each round begins with another check, so that each worker comes to all.
struct Turn {
  size_t check;
  int64_t number;
};
inline Turn turn_of(int64_t turn, size_t checks) {
  const auto count = static_cast<int64_t>(checks);
  return {static_cast<size_t>((turn + turn / count) % count), turn / count};
}

/// The cases of one worker: turns `first`, `first + stride`, ... `report` gets each failure that is the first of its
/// check so far, and again when it has been made smaller.
using Report = std::function<void(size_t check, int64_t number, const FoundFailure&)>;
struct Share {
  size_t worker = 0;
  int64_t first = 0, stride = 1;
  Clock::time_point end;
};
void work(Board& board, const Checks& checks, const SearchOptions& options, const Share& share, const Report& report);

}  // namespace lockstep::fuzz
