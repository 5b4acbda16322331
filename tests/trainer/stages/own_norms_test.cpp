// Norms of LibTorch's in a user's model: gradients of their scales and biases are not rounded before all microbatches'
// samples are added, so that every mesh and number of microbatches has one device's bits.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "models/cast.h"
#include "models/layers.h"
#include "tests/support/message_of.h"
#include "tests/trainer/stages/two_steps.h"

namespace lockstep::trainer {
namespace {

using at::Tensor;
using Norm = std::function<Tensor(const Tensor& x, const Tensor& scale, const Tensor& bias)>;

/// x + norm(x), with a scale and a bias for each feature.
class NormBlock : public models::Module {
 public:
  NormBlock(models::Module& owner, std::string name, int64_t width, Norm norm)
      : Module(owner, std::move(name)),
        norm_(std::move(norm)),
        scale_(*this, "scale", {width}, "embed", models::Initial::drawn(rng::normal(1, 0.3))),
        bias_(*this, "bias", {width}, "embed", models::Initial::drawn(rng::normal(0, 0.3))) {}
  Tensor forward(const Tensor& x) {
    const auto open = scope();
    return x + norm_(models::annotate(x, "batch length embed"), scale_, bias_);
  }

 private:
  Norm norm_;
  models::Parameter scale_, bias_;
};

class Normed : public models::Model {
 public:
  explicit Normed(const Norm& norm)
      : embedding_(*this, "tok_embeddings", 29, 24, models::Initial::drawn(rng::normal(0, 1))),
        first_(*this, "first", 24, norm),
        second_(*this, "second", 24, norm),
        output_(*this, "output",
                models::Linear::Options{24, 29, "vocab embed", models::Initial::drawn(rng::normal(0, 0.2)), {}, true}) {
  }
  int64_t vocabulary() const override { return 29; }
  int64_t width() const override { return 24; }
  std::string sizes_text() const override { return "width 24"; }
  double operations_per_token(int64_t) const override { return 1; }
  std::vector<models::Module*> blocks() override { return {&embedding_, &first_, &second_, &output_}; }
  std::vector<models::BlockCall> block_calls(at::IntArrayRef) override {
    return {{[this](const Tensor& x) { return models::annotate(embedding_.forward(x), "batch norm_length embed"); }},
            {[this](const Tensor& x) { return first_.forward(x); }},
            {[this](const Tensor& x) { return second_.forward(x); }},
            {[this](const Tensor& x) { return output_.unrounded(models::annotate(x, "batch length embed")); }}};
  }

 private:
  models::Embedding embedding_;
  NormBlock first_, second_;
  models::Linear output_;
};

Tensor group_norm(const Tensor& x, const Tensor& scale, const Tensor& bias) {
  return at::group_norm(x.transpose(1, 2), 4, scale, bias).transpose(1, 2);
}
Tensor layer_norm(const Tensor& x, const Tensor& scale, const Tensor& bias) {
  return at::layer_norm(x, {x.size(-1)}, scale, bias);
}
Tensor instance_norm(const Tensor& x, const Tensor& scale, const Tensor& bias) {
  return at::group_norm(x.transpose(1, 2), 24, scale, bias).transpose(1, 2);
}
Tensor scaled(const Tensor& x, const Tensor& scale, const Tensor& bias) {
  return models::given_as(x, x * scale + bias);
}

struct NormCase {
  const char* name;
  Tensor (*norm)(const Tensor& x, const Tensor& scale, const Tensor& bias);
};

class OwnNorms : public ::testing::TestWithParam<NormCase> {};

TEST_P(OwnNorms, HaveOneDevicesBitsInAnyNumberOfMicrobatches) {
  const auto make = [] { return std::make_unique<Normed>(GetParam().norm); };
  for (const char* dtype : {"float32", "bfloat16"}) {
    auto job = testing::small_job();
    job.training.mixed_precision_param = dtype;
    const auto expected = testing::two_steps(job, "one device", make);
    for (const char* mesh : {"one device", "dp_shard=2", "pp=2", "pp=2,dp_shard=2", "cp=2", "tp=2"})
      for (const int64_t rows : {1, 2, 6}) {
        auto other = job;
        other.training.local_batch_size = rows;
        EXPECT_EQ(testing::two_steps(other, mesh, make), expected)
            << mesh << ", microbatches of " << rows << ", " << dtype;
      }
  }
}

INSTANTIATE_TEST_SUITE_P(Norms, OwnNorms,
                         ::testing::Values(NormCase{"group", group_norm}, NormCase{"layer", layer_norm},
                                           NormCase{"instance", instance_norm}),
                         [](const auto& each) { return std::string(each.param.name); });

/// Autograd reshapes the gradient of what is broadcast, which finishes a sum over samples.
TEST(ScaledByAProduct, IsRefusedInSixteenBitsAndSeveralMicrobatches) {
  const auto make = [] { return std::make_unique<Normed>(scaled); };
  auto job = testing::small_job();
  job.training.mixed_precision_param = "bfloat16";
  const auto expected = testing::two_steps(job, "one device", make);
  EXPECT_EQ(testing::two_steps(job, "dp_shard=2,tp=2", make), expected);
  job.training.local_batch_size = 2;
  const auto message = testing::message_of<BadInput>([&] { testing::two_steps(job, "one device", make); });
  EXPECT_THAT(message, ::testing::HasSubstr("second: the gradient of a parameter (BFloat16[24]"));
  EXPECT_THAT(message, ::testing::HasSubstr("is rounded in each microbatch"));
  job.training.mixed_precision_float32 = {"*.scale", "*.bias"};
  const auto wide = testing::two_steps(job, "one device", make);
  job.training.local_batch_size = 4;
  for (const char* mesh : {"one device", "dp_shard=2,tp=2", "pp=2,cp=2"})
    EXPECT_EQ(testing::two_steps(job, mesh, make), wide) << mesh;
}

}  // namespace
}  // namespace lockstep::trainer
