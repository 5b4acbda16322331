#include "fuzz/search/board.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>

#include "core/error.h"

namespace lockstep::fuzz {

Board::Board(size_t checks, size_t workers) {
  struct Head {
    std::atomic<uint64_t> digest;
    std::atomic<bool> stop;
  };
  bytes_ = sizeof(Head) + checks * sizeof(Tally) + workers * sizeof(Worker);
  memory_ = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  LOCKSTEP_CHECK(memory_ != MAP_FAILED, "mmap of {} bytes: {}", bytes_, std::strerror(errno));
  auto* head = new (memory_) Head{};
  digest_ = &head->digest, stop_ = &head->stop;
  auto* tallies = reinterpret_cast<Tally*>(head + 1);
  tallies_ = {tallies, checks};
  workers_ = {reinterpret_cast<Worker*>(tallies + checks), workers};
  for (auto& tally : tallies_) new (&tally) Tally{}, tally.first_failed = std::numeric_limits<int64_t>::max();
  for (auto& worker : workers_) new (&worker) Worker{}, worker.turn = -1;
}

Board::~Board() { ::munmap(memory_, bytes_); }

int64_t Board::cases() const {
  int64_t count = 0;
  for (const auto& tally : tallies_) count += tally.cases;
  return count;
}

bool lower(std::atomic<int64_t>& value, int64_t candidate) {
  auto seen = value.load();
  while (candidate < seen)
    if (value.compare_exchange_weak(seen, candidate)) return true;
  return false;
}

}  // namespace lockstep::fuzz
