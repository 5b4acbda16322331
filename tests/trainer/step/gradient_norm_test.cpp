// The norm of a step's gradients and what clipping makes of it, beside closed forms: a run and its reference would
// share a fault here.
#include "trainer/step/gradient_norm.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include <cmath>

#include "runtime/redistribution/gather.h"
#include "tests/support/small_models.h"

namespace lockstep::trainer {
namespace {

constexpr double kRate = 0.5;

/// One step of SGD without momentum or decay on two ranks.
struct OneStep {
  OneStep(Job job, double limit) {
    job.optimizer.name = "SGD";
    job.optimizer.weight_decay = 0;
    job.training.max_norm = limit;
    TrainingRun::Options options;
    options.mesh = parse_mesh("dp_shard=2");
    options.keep_gradients = true;
    options.make_model = testing::small_llama;
    TrainingRun run(job, options);
    for (const auto& entry : run.state()) before.push_back(gather(entry.value).to(at::kDouble).clone());
    const auto result = run.step(1, testing::batch_for(job, 1), kRate);
    norm = result.gradient_norm;
    for (const auto& gradient : result.gradients) gradients.push_back(gather(gradient).to(at::kDouble));
    for (const auto& entry : run.state()) after.push_back(gather(entry.value).to(at::kDouble));
  }

  double root_of_squares() const {
    double squares = 0;
    for (const auto& gradient : gradients) squares += gradient.square().sum().item<double>();
    return std::sqrt(squares);
  }

  /// How much of its gradient the parameters have moved by.
  void expect_scaled_by(double scale) const {
    for (size_t p = 0; p < before.size(); ++p)
      EXPECT_LT((before[p] - kRate * scale * gradients[p] - after[p]).abs().max().item<double>(), 1e-6) << p;
  }

  double norm = 0;
  std::vector<at::Tensor> before, after, gradients;
};

void expect_closed_forms(const Job& job) {
  const OneStep free(job, 1e9);
  ASSERT_GT(free.norm, 0.1);
  EXPECT_GT(std::abs(free.norm - 1), 0.01) << "1 is its own root";
  EXPECT_NEAR(free.norm, free.root_of_squares(), 1e-5 * free.norm);
  free.expect_scaled_by(1);  // a limit above the norm changes nothing
  const double limit = free.norm / 4;
  OneStep(job, limit).expect_scaled_by(limit / (free.norm + 1e-6));
}

TEST(GradientNorm, AndClippingAreTheirClosedFormsInCanonicalNumerics) { expect_closed_forms(testing::small_job()); }
TEST(GradientNorm, AndClippingAreTheirClosedFormsInNativeNumerics) { expect_closed_forms(testing::native_job()); }

}  // namespace
}  // namespace lockstep::trainer
