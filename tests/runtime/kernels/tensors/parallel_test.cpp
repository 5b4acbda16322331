// Kernels really run on as many threads as LibTorch has.
#include "runtime/kernels/tensors/parallel.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "core/error.h"
#include "runtime/kernels/tensors/parallel_workers.h"

namespace lockstep::kernels {
namespace {

class Parallel : public ::testing::Test {
 protected:
  void SetUp() override {
    before_ = at::get_num_threads();
    at::set_num_threads(kThreads);
  }
  void TearDown() override { at::set_num_threads(before_); }

  static constexpr int kThreads = 3;

 private:
  int before_ = 1;
};

/// Everybody waits until all have come: one thread alone never gets through.
class Meeting {
 public:
  explicit Meeting(int size) : size_(size) {}
  bool come() {
    ++arrived_;
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (arrived_ < size_ && std::chrono::steady_clock::now() < end) std::this_thread::yield();
    return arrived_ >= size_;
  }

 private:
  const int size_;
  std::atomic<int> arrived_ = 0;
};

TEST_F(Parallel, PartsRunAtTheSameTime) {
  Meeting meeting(kThreads);
  std::atomic<int> met = 0;
  parallel_for(0, kThreads, 1, [&](int64_t begin, int64_t end) {
    EXPECT_EQ(end, begin + 1);
    met += meeting.come();
  });
  EXPECT_EQ(met, kThreads);
}

TEST_F(Parallel, WorkersOfAProductRunAtTheSameTime) {
  const auto workers = parallel_workers(1e9);
  EXPECT_EQ(workers.count, kThreads);
  Meeting meeting(kThreads);
  std::atomic<int> met = 0;
  workers(kThreads, [&](int64_t) { met += meeting.come(); });
  EXPECT_EQ(met, kThreads);
}

TEST_F(Parallel, SmallProductsStayWithTheCaller) {
  const auto caller = std::this_thread::get_id();
  parallel_workers(10)(kThreads, [&](int64_t) { EXPECT_EQ(std::this_thread::get_id(), caller); });
}

TEST_F(Parallel, EveryNumberComesOnce) {
  for (const int64_t count : {0, 1, 2, 7, 1000}) {
    std::vector<std::atomic<int>> seen(static_cast<size_t>(count));
    parallel_for(0, count, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) ++seen[static_cast<size_t>(i)];
    });
    for (const auto& times : seen) EXPECT_EQ(times, 1);
  }
}

TEST_F(Parallel, AnErrorOfAPartComesBack) {
  EXPECT_THROW(parallel_for(0, kThreads, 1,
                            [](int64_t begin, int64_t) {
                              if (begin == kThreads - 1) fail<BadInput>("a part");
                            }),
               BadInput);
}

}  // namespace
}  // namespace lockstep::kernels
