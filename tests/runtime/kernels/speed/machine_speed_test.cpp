#include "runtime/kernels/speed/machine_speed.h"

#include <gtest/gtest.h>

#include <atomic>
#include <vector>

namespace lockstep::kernels {
namespace {

TEST(ThreadWorkers, DoEachItemOnce) {
  for (const int count : {1, 2, 3, 7})
    for (const int64_t items : {0, 1, 2, 5, 64}) {
      std::vector<std::atomic<int>> done(static_cast<size_t>(items));
      thread_workers(count)(items, [&](int64_t item) { ++done[static_cast<size_t>(item)]; });
      for (const auto& times : done) EXPECT_EQ(times, 1) << count << " threads, " << items << " items";
    }
}

/// Nothing that runs these tests is outside of these bounds: a wrong count of operations or bytes would be.
TEST(MachineSpeed, IsPlausible) {
  EXPECT_GT(product_speed({}), 1e8);
  EXPECT_LT(product_speed({}), 1e12) << "one thread";
  EXPECT_GT(copy_speed({}), 1e8);
  EXPECT_LT(copy_speed({}), 1e12);
}

}  // namespace
}  // namespace lockstep::kernels
