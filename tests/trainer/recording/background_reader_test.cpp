// Tensors are read in order, completely, and before anybody writes to them.
#include "replay/capture/background_reader.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstring>

#include "core/digest/tensor_digest.h"
#include "core/error.h"
#include "runtime/plain/tensor_bytes.h"

namespace lockstep::replay {
namespace {

constexpr size_t kLarge = size_t{1} << 30;
constexpr auto kBytes = TensorReader::Wanted::kDigestAndBytes;

std::vector<float> floats(std::span<const std::byte> bytes) {
  std::vector<float> values(bytes.size() / sizeof(float));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

TEST(BackgroundReader, ReadsInOrderWhatWasGiven) {
  std::vector<std::vector<float>> seen;
  BackgroundReader reader(kLarge);
  for (int i = 0; i < 200; ++i)
    reader.read(at::full({i}, i, at::kFloat), kBytes, [&](auto, auto bytes) { seen.push_back(floats(bytes)); });
  reader.finish();
  ASSERT_EQ(seen.size(), 200u);
  for (size_t i = 0; i < seen.size(); ++i) EXPECT_EQ(seen[i], std::vector<float>(i, static_cast<float>(i)));
}

TEST(BackgroundReader, ReadsTransposedAndExpandedTensorsRowByRow) {
  const auto x = at::arange(6, at::kFloat).reshape({2, 3});
  std::vector<std::vector<float>> seen;
  BackgroundReader reader(kLarge);
  for (const auto& tensor : {x.t(), x.narrow(1, 1, 2), x.narrow(0, 1, 1).expand({2, 3}), x.narrow(0, 0, 0)})
    reader.read(tensor, kBytes, [&](auto, auto bytes) { seen.push_back(floats(bytes)); });
  reader.finish();
  EXPECT_EQ(seen, (std::vector<std::vector<float>>{{0, 3, 1, 4, 2, 5}, {1, 2, 4, 5}, {3, 4, 5, 3, 4, 5}, {}}));
}

TEST(BackgroundReader, TellsTheDigestOfWhatItReads) {
  const auto x = at::arange(6000, at::kFloat).reshape({60, 100});
  std::vector<std::string> digests;
  std::vector<size_t> sizes;
  BackgroundReader reader(kLarge);
  for (const auto wanted : {TensorReader::Wanted::kDigest, kBytes})
    reader.read(x.t(), wanted, [&](const Digest& digest, auto bytes) {
      digests.push_back(digest.text());
      sizes.push_back(bytes.size());
    });
  reader.finish();
  const auto expected = tensor_digest(bytes_of(x.t().contiguous())).text();
  EXPECT_EQ(digests, (std::vector{expected, expected}));
  EXPECT_EQ(sizes, (std::vector<size_t>{0, 24000}));
}

/// A reader that is slow: whoever does not wait for it writes first.
struct SlowRead {
  explicit SlowRead(BackgroundReader& reader) {
    reader.read(memory.narrow(0, 2, 3), kBytes, [this](auto, auto bytes) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      seen = floats(bytes);
    });
  }
  at::Tensor memory = at::ones({1 << 10});
  std::vector<float> seen;
};

TEST(BackgroundReader, LetsNobodyWriteToWhatWaits) {
  BackgroundReader reader(kLarge);
  SlowRead read(reader);
  const auto written = read.memory.narrow(0, 0, 4);  // another tensor of the same memory
  reader.before_write(written);
  written.fill_(7);
  reader.finish();
  EXPECT_EQ(read.seen, (std::vector<float>{1, 1, 1}));
}

TEST(BackgroundReader, WritersOfOtherMemoryDoNotWait) {
  BackgroundReader reader(kLarge);
  std::atomic<bool> may_go = false;
  reader.read(at::ones({1}), kBytes, [&](auto, auto) { may_go.wait(false); });
  reader.before_write(at::ones({4}));
  may_go = true;
  may_go.notify_all();
  reader.finish();
}

TEST(BackgroundReader, HoldsNoMoreMemoryThanItMay) {
  constexpr int64_t kElements = 1 << 20;
  std::atomic<int> read = 0;
  BackgroundReader reader(3 * kElements * sizeof(float));
  for (int given = 1; given <= 20; ++given) {
    reader.read(at::ones({kElements}), kBytes, [&](auto, auto) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      ++read;
    });
    EXPECT_LE(given - read, 6);
  }
  reader.finish();
  EXPECT_EQ(read, 20);
}

TEST(BackgroundReader, TellsOfAnErrorAndGoesOn) {
  int done = 0;
  BackgroundReader reader(kLarge);
  reader.read(at::ones({1}), kBytes, [](auto, auto) { fail<InternalError>("no more memory"); });
  reader.read(at::ones({1}), kBytes, [&](auto, auto) { ++done; });
  EXPECT_THROW(reader.finish(), InternalError);
  EXPECT_EQ(done, 0);
  reader.read(at::ones({1}), kBytes, [&](auto, auto) { ++done; });
  reader.finish();
  EXPECT_EQ(done, 1);
}

}  // namespace
}  // namespace lockstep::replay
