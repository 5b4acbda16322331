// Batch norm's running statistics, which its schema does not say that it writes: those of the whole batch on any mesh.
#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include "fuzz/cases/tensors.h"
#include "fuzz/trials/rule_trial.h"
#include "runtime/context/scopes.h"
#include "runtime/redistribution/gather.h"
#include "runtime/tensor/sharded_tensor.h"

namespace lockstep::testing {
namespace {

struct Statistics {
  at::Tensor result, mean, variance;
};

Statistics after_one_batch(const at::Tensor& x, const at::Tensor& mean, const at::Tensor& variance) {
  const auto result = at::batch_norm(x, {}, {}, mean, variance, /*training=*/true, 0.25, 1e-3, /*cudnn_enabled=*/false);
  return {result, mean, variance};
}

class BatchNorm : public ::testing::TestWithParam<const char*> {};

TEST_P(BatchNorm, FollowsTheWholeBatch) {
  const auto world = simulated_world({{"dp", 2}, {"tp", 3}}, {.domain = Domain::kFloat64});
  const auto& mesh = world->mesh("dp=2,tp=3");
  const MeshScope here(mesh);
  const auto plain = exact_tensor({5, 6, 4}).to(c10::kDouble).mul(0.375).add(0.5);
  const auto mean = at::arange(6, c10::kDouble), variance = mean + 2;
  const auto expected = after_one_batch(plain, mean.clone(), variance.clone());
  const char* channels = std::string_view(GetParam()).find("tp=S(1)") == std::string_view::npos ? "[]" : "[tp=S(0)]";
  const auto put = [&](const at::Tensor& x, const char* layout) { return distribute(x, Layout::parse(mesh, layout)); };
  const auto actual = after_one_batch(put(plain, GetParam()), put(mean, channels), put(variance, channels));
  EXPECT_TRUE(at::allclose(gather(actual.result), expected.result, 1e-12, 1e-12));
  EXPECT_TRUE(at::allclose(gather(actual.mean), expected.mean, 1e-12, 1e-12)) << gather(actual.mean);
  EXPECT_TRUE(at::allclose(gather(actual.variance), expected.variance, 1e-12, 1e-12)) << gather(actual.variance);
}

INSTANTIATE_TEST_SUITE_P(Layouts, BatchNorm,
                         ::testing::Values("[]", "[dp=S(0), tp=R]", "[dp=S(0), tp=S(1)]", "[dp=S(2), tp=S(0)]",
                                           "[dp=P(sum), tp=S(0)]"));

}  // namespace
}  // namespace lockstep::testing
