#include "runtime/kernels/speed/machine_speed.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>
#include <vector>

namespace lockstep::kernels {
namespace {

using Seconds = std::chrono::duration<double>;
using Clock = std::chrono::steady_clock;

constexpr Seconds kEnough{0.05};

/// How often a second `work` is done, once it has been done. The mean, not the best: processes that share a processor
/// have it in turns, and all of them in the best of their turns would have more of it than there is.
double rate(const std::function<void()>& work) {
  work();
  const auto start = Clock::now();
  double times = 0;
  Seconds spent{};
  do {
    work();
    ++times;
    spent = Clock::now() - start;
  } while (spent < kEnough);
  return times / spent.count();
}

/// Normal numbers of one size: no product of them is subnormal, which would be slow.
std::vector<float> numbers(int64_t count) {
  std::vector<float> values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i) values[i] = 1 + static_cast<float>(i % 61) / 64;
  return values;
}

}  // namespace

Workers thread_workers(int count) {
  if (count <= 1) return {};
  return {count, [count](int64_t items, const std::function<void(int64_t)>& work) {
            std::vector<std::thread> threads;
            for (int t = 0; t < count; ++t)
              threads.emplace_back([&, t] {
                for (int64_t item = items * t / count; item < items * (t + 1) / count; ++item) work(item);
              });
            for (auto& thread : threads) thread.join();
          }};
}

double product_speed(const Workers& workers) {
  constexpr int64_t kSize = 512;
  const int64_t rows = kSize * std::max(1, workers.count);
  const auto a = numbers(rows * kSize), b = numbers(kSize * kSize);
  std::vector<float> out(static_cast<size_t>(rows * kSize));
  const auto multiply = [&] {
    product<float, float>(rows, kSize, {a.data(), kSize, 0, 1}, {b.data(), kSize, 0, 1}, Contraction::over(kSize),
                          {out.data(), kSize, 0}, workers);
  };
  return rate(multiply) * 2 * static_cast<double>(rows * kSize * kSize);
}

double copy_speed(const Workers& workers) {
  constexpr size_t kBytes = size_t{64} << 20;
  constexpr int64_t kParts = 64;
  const std::vector<char> from(kBytes, 1);
  std::vector<char> to(kBytes, 2);
  const auto copy = [&] {
    workers(kParts, [&](int64_t part) {
      const size_t begin = kBytes / kParts * static_cast<size_t>(part);
      std::memcpy(to.data() + begin, from.data() + begin, kBytes / kParts);
    });
  };
  return rate(copy) * 2 * static_cast<double>(kBytes);
}

}  // namespace lockstep::kernels
