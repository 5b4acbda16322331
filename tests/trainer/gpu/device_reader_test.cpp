// Tensors in a device's memory are read in batches, in order, with the digests that a CPU takes. The device's part is
// played by host memory; where there is a GPU, by itself.
#include "replay/capture/device_reader.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "replay/capture/cuda_queue.h"
#include "rng/cuda_fill.h"
#include "runtime/context/gpu.h"
#include "runtime/plain/tensor_bytes.h"
#include "tests/support/host_queue.h"
#include "tests/support/message_of.h"

namespace lockstep::replay {
namespace {

constexpr auto kDigest = TensorReader::Wanted::kDigest, kBytes = TensorReader::Wanted::kDigestAndBytes;

/// What a reader says of a tensor, as text: its digest and how many bytes, which have to be the tensor's.
std::string text_of(const Digest& digest, size_t bytes) { return digest.text() + " " + std::to_string(bytes); }

std::string expected(const at::Tensor& tensor, bool with_bytes) {
  const auto plain = tensor.cpu().contiguous();
  return text_of(tensor_digest(bytes_of(plain)), with_bytes ? plain.nbytes() : 0);
}

std::vector<at::Tensor> tensors_of_many_sizes(c10::Device device) {
  std::vector<at::Tensor> tensors;
  for (const int64_t bytes :
       {0, 1, 3, 4, 8, 9, 16, 17, 128, 129, 240, 241, 1024, 8191, 8192, 8193, 3 * 8192 + 5, 1 << 20})
    tensors.push_back(at::arange(bytes, at::kLong).mul(40503).bitwise_right_shift(3).to(at::kByte).to(device));
  const auto x = at::arange(60000, at::kFloat).reshape({200, 300}).to(device);
  for (const auto& view : {x.t(), x.narrow(1, 1, 77), x.narrow(0, 1, 1).expand({5, 300})}) tensors.push_back(view);
  return tensors;
}

/// Flat ones so many elements behind an aligned address.
at::Tensor copy_of(const at::Tensor& tensor, int64_t shift) {
  if (tensor.dim() > 1) return tensor.clone(at::MemoryFormat::Preserve);
  const auto room = at::empty({tensor.numel() + shift}, tensor.options());
  return room.narrow(0, shift, tensor.numel()).copy_(tensor);
}

/// Reads the tensors, each twice; they are written to as soon as they have been given.
void expect_digests(DeviceReader& reader, const std::vector<at::Tensor>& tensors) {
  std::vector<std::string> seen, right;
  for (const auto& tensor : tensors)
    for (const auto wanted : {kDigest, kBytes}) {
      right.push_back(expected(tensor, wanted == kBytes));
      auto copy = copy_of(tensor, wanted == kBytes ? 0 : 3);
      reader.read(copy, wanted, [&, plain = tensor.cpu().contiguous()](const Digest& digest, auto bytes) {
        seen.push_back(text_of(digest, bytes.size()));
        EXPECT_TRUE(bytes.empty() || std::equal(bytes.begin(), bytes.end(), bytes_of(plain).begin()));
      });
      reader.before_write(copy);
      copy.zero_();
    }
  reader.finish();
  EXPECT_EQ(seen, right);
}

TEST(DeviceReader, TellsDigestsAndBytesInOrder) {
  int waits = 0;
  DeviceReader reader(c10::kCPU, std::make_unique<testing::HostQueue>(waits), size_t{64} << 20);
  expect_digests(reader, tensors_of_many_sizes(c10::kCPU));
  EXPECT_EQ(waits, 1) << "one batch";
  expect_digests(reader, tensors_of_many_sizes(c10::kCPU));
  EXPECT_EQ(waits, 2);
}

TEST(DeviceReader, WaitsWhenABatchIsFullAndForATensorThatIsLarger) {
  int waits = 0;
  DeviceReader reader(c10::kCPU, std::make_unique<testing::HostQueue>(waits), 10000);
  expect_digests(reader, tensors_of_many_sizes(c10::kCPU));
  EXPECT_GT(waits, 5);
}

TEST(DeviceReader, TellsOfAnErrorAndGoesOn) {
  int waits = 0, done = 0;
  DeviceReader reader(c10::kCPU, std::make_unique<testing::HostQueue>(waits), 100);
  const auto x = at::ones({20});
  reader.read(x, kBytes, [](auto, auto) { fail<InternalError>("no more memory"); });
  for (int i = 0; i < 3; ++i) reader.read(x, kBytes, [&](auto, auto) { ++done; });  // a batch each
  EXPECT_THROW(reader.finish(), InternalError);
  EXPECT_EQ(done, 0);
  reader.read(x, kBytes, [&](auto, auto) { ++done; });
  reader.finish();
  EXPECT_EQ(done, 1);
}

TEST(DeviceReader, OnAGpuTellsTheCpusDigests) {
  if (const auto reason = rng::cuda_unavailable_reason(); !reason.empty())
    GTEST_SKIP() << "NOT CHECKED: digests on a GPU (" << reason << ")";
  require_gpu(0);
  DeviceReader reader(c10::kCUDA, make_cuda_queue(), 1 << 20);
  expect_digests(reader, tensors_of_many_sizes(c10::kCUDA));
  expect_digests(reader, {at::ones({20, 1 << 20}, at::dtype(at::kByte).device(c10::kCUDA))});
}

TEST(DeviceReader, OnAGpuWaitsAtItsLimit) {
  if (const auto reason = rng::cuda_unavailable_reason(); !reason.empty())
    GTEST_SKIP() << "NOT CHECKED: the room of a reader on a GPU (" << reason << ")";
  require_gpu(0);
  int done = 0;
  const auto reader = make_tensor_reader(c10::kCUDA, 10000);
  const auto x = at::ones({2500}, at::dtype(at::kByte).device(c10::kCUDA));
  for (const int before : {0, 0, 0, 0, 4}) {
    reader->read(x, kBytes, [&](auto, auto) { ++done; });
    EXPECT_EQ(done, before);
  }
  reader->finish();
  EXPECT_EQ(done, 5);
}

TEST(DeviceReader, WithoutCudaIsAClearError) {
  if (rng::cuda_unavailable_reason().find("built without") == std::string::npos) GTEST_SKIP() << "built with CUDA";
  EXPECT_THROW(make_tensor_reader(c10::kCUDA, 1), BadInput);
  EXPECT_EQ(lockstep::testing::message_of<BadInput>([] { make_cuda_queue(); }),
            "digests on a GPU: built without CUDA (configure with -DLOCKSTEP_CUDA=ON)");
}

}  // namespace
}  // namespace lockstep::replay
