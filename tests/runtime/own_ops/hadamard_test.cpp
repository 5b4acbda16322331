// The Hadamard transform: the matrix's product, its own inverse and derivative, one device's bits on meshes.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "fuzz/cases/tensors.h"
#include "runtime/own_ops/mesh_ops.h"
#include "runtime/redistribution/gather.h"
#include "tests/support/message_of.h"

namespace lockstep {
namespace {

using at::Tensor;
using ::testing::HasSubstr;
using testing::message_of;
using testing::same_bits;

/// Sylvester's: H(2 n) = [[H(n), H(n)], [H(n), -H(n)]].
Tensor matrix(int64_t n) {
  auto h = at::ones({1, 1});
  while (h.size(0) < n) h = at::cat({at::cat({h, h}, 1), at::cat({h, -h}, 1)}, 0);
  return h;
}

TEST(Hadamard, IsTheMatrixesProduct) {
  for (const int64_t n : {2, 4, 8, 16, 64, 512}) {
    const auto x = at::randint(-9, 9, {3, n}).to(at::kFloat);  // exact
    EXPECT_TRUE(at::equal(mesh_ops::hadamard_transform(x, 0.5), x.mm(matrix(n)) * 0.5)) << n;
  }
  EXPECT_EQ(mesh_ops::hadamard_transform(at::ones({1, 32768}), 1)[0][0].item<float>(), 32768);
}

TEST(Hadamard, RoundsSixteenBitsOnce) {
  for (const auto dtype : {at::kBFloat16, at::kHalf}) {
    const auto x = at::randn({5, 64}).to(dtype);
    EXPECT_TRUE(same_bits(mesh_ops::hadamard_transform(x, 0.125),
                          mesh_ops::hadamard_transform(x.to(at::kFloat), 0.125).to(dtype)));
  }
}

TEST(Hadamard, IsItsOwnDerivative) {
  const auto x = at::randn({2, 16}).requires_grad_(), weights = at::randn({2, 16});
  (mesh_ops::hadamard_transform(x, 0.25) * weights).sum().backward();
  EXPECT_TRUE(same_bits(x.grad(), mesh_ops::hadamard_transform(weights, 0.25)));
}

TEST(Hadamard, GivesOneDevicesBitsOnMeshes) {
  const auto world = testing::simulated_world({{"dp", 2}, {"tp", 4}});
  const auto& mesh = world->mesh("dp=2,tp=4");
  for (const auto dtype : {at::kFloat, at::kBFloat16})
    for (const int64_t n : {4, 8, 32, 1024}) {
      const auto x = at::randn({4, 3, n}).to(dtype), expected = mesh_ops::hadamard_transform(x, 0.7);
      for (const char* layout : {"[]", "[dp=S(0), tp=S(1)]", "[tp=S(2)]", "[dp=S(2)]", "[dp=S(0), tp=S(2)]"}) {
        auto sharded = distribute(x, Layout::parse(mesh, layout)).requires_grad_();
        const auto y = mesh_ops::hadamard_transform(sharded, 0.7);
        EXPECT_TRUE(same_bits(gather(y), expected)) << n << layout;
        y.backward(distribute(x, layout_of(y)));
        EXPECT_TRUE(same_bits(gather(sharded.grad()), expected)) << n << layout;
      }
    }
}

/// Two all-to-alls, where a gather would send three times a rank's elements.
TEST(Hadamard, ExchangesWhatOtherRanksNeed) {
  const auto world = testing::simulated_world({{"tp", 4}});
  const auto& mesh = world->mesh("tp=4");
  const auto x = distribute(at::randn({2, 1024}), Layout::parse(mesh, "[tp=S(1)]"));
  const auto y = mesh_ops::hadamard_transform(x, 1);
  EXPECT_EQ(layout_of(y).text(), "[tp=S(1)]");
}

TEST(Hadamard, RefusesOtherSizes) {
  const auto world = testing::simulated_world({{"tp", 2}});
  const auto& mesh = world->mesh("tp=2");
  const auto transform = [&](at::IntArrayRef sizes, at::ScalarType dtype = at::kFloat) {
    return message_of<BadInput>(
        [&] { mesh_ops::hadamard_transform(distribute(at::ones(sizes, dtype), Layout::replicated(mesh)), 1); });
  };
  for (const int64_t n : {0, 1, 12, 65536})
    EXPECT_THAT(transform({2, n}), HasSubstr(fmt::format("the last dimension has {} elements, expected a power of two "
                                                         "from 2 to 32768",
                                                         n)));
  EXPECT_THAT(transform({2, 4}, at::kLong), HasSubstr("it transforms float32, bfloat16 and float16, not Long"));
}

}  // namespace
}  // namespace lockstep
