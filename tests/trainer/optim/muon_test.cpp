// Muon beside a plain reading of Jordan et al. (2024), in double, and what its iteration is for.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include <cmath>

#include "trainer/job/job.h"
#include "trainer/optim/newton_schulz.h"
#include "trainer/optim/optimizer.h"

namespace lockstep::trainer {
namespace {

using Sizes = std::vector<std::pair<int64_t, int64_t>>;

at::Tensor matrix_of(int64_t rows, int64_t columns, int64_t start = 0) {
  return at::sin(at::arange(rows * columns, at::kDouble).add(start).mul(1.7)).view({rows, columns});
}

/// X = (a I + b X X^T + c (X X^T)^2) X, written out.
at::Tensor plain_orthogonalised(at::Tensor x) {
  const bool tall = x.size(0) > x.size(1);
  if (tall) x = x.t();
  x = x / (std::sqrt(x.pow(2).sum().item<double>()) + 1e-7);
  const auto identity = at::eye(x.size(0), at::kDouble);
  for (int i = 0; i < 5; ++i) {
    const auto gram = at::matmul(x, x.t());
    x = at::matmul(3.4445 * identity - 4.7750 * gram + 2.0315 * at::matmul(gram, gram), x);
  }
  return tall ? x.t() : x;
}

double distance(const at::Tensor& left, const at::Tensor& right) {
  return left.numel() == 0 ? 0 : (left - right).abs().max().item<double>();
}

TEST(NewtonSchulz, IsThePublishedPolynomialOfWideTallAndSingleRowedMatrices) {
  for (const auto& [rows, columns] : Sizes{{4, 9}, {9, 4}, {5, 5}, {1, 7}, {7, 1}, {1, 1}}) {
    const auto matrix = matrix_of(rows, columns);
    EXPECT_LT(distance(orthogonalised(matrix), plain_orthogonalised(matrix)), 1e-12) << rows << " " << columns;
  }
}

TEST(NewtonSchulz, BringsSingularValuesNearToOne) {
  const auto result = orthogonalised(matrix_of(6, 40) + 3 * at::eye(6, 40, at::kDouble));
  const auto values = at::linalg_svdvals(result);
  EXPECT_GT(values.min().item<double>(), 0.6);
  EXPECT_LT(values.max().item<double>(), 1.25);
}

TEST(NewtonSchulz, GivesZerosOfZerosAndNothingOfNothing) {
  EXPECT_TRUE(at::equal(orthogonalised(at::zeros({3, 4})), at::zeros({3, 4})));
  EXPECT_EQ(orthogonalised(at::zeros({0, 4})).sizes(), at::IntArrayRef({0, 4}));
}

Job muon_job() {
  Job job;
  job.optimizer.name = "Muon";
  return job;
}

ParameterState state_of(const Optimizer& optimizer, const at::Tensor& value, models::Division division, bool muon) {
  ParameterState state{"weight", value, true, {}, std::move(division), {.muon = muon}};
  state.slots = new_slots(optimizer, state);
  return state;
}

models::Division whole(const at::Tensor& value) {
  return models::Division(value.sizes().vec(), {{"weight", value.size(0), {}}});
}

TEST(Muon, IsItsPapers) {
  constexpr double kRate = 0.05, kScale = 0.5, kDecay = 0.1;
  for (const double share : {0.95, 0.8})
    for (const auto& [rows, columns] : Sizes{{3, 12}, {12, 3}}) {
      auto job = muon_job();
      if (share < 0.9) job.optimizer.momentum = share;
      const auto optimizer = make_optimizer(job);
      auto value = matrix_of(rows, columns, 5), momentum = at::zeros_like(value);
      const auto state = state_of(*optimizer, value.clone(), whole(value), true);
      for (int64_t step = 1; step <= 3; ++step) {
        const auto gradient = matrix_of(rows, columns, 100 * step);
        optimizer->update(state, gradient, optimizer->scalars(step, kRate, kScale));
        momentum = share * momentum + kScale * gradient;
        const double factor = std::sqrt(std::max(1.0, static_cast<double>(rows) / static_cast<double>(columns)));
        value =
            value * (1 - kRate * kDecay) - kRate * factor * plain_orthogonalised(kScale * gradient + share * momentum);
        EXPECT_LT(distance(state.value, value), 1e-12) << rows << " " << share << " step " << step;
      }
    }
}

/// Rows 0, 1 and 4, 5 of a fused parameter are one stored tensor, rows 2, 3 and 6, 7 another.
TEST(Muon, MakesEachStoredTensorOfAFusedParameterOrthogonalByItself) {
  auto job = muon_job();
  job.optimizer.weight_decay = 0;
  const auto optimizer = make_optimizer(job);
  const auto fused = matrix_of(8, 5), gradient = matrix_of(8, 5, 3);
  const models::Division division({8, 5}, {{"wq", 2, {}}, {"wk", 2, {}}});
  const auto state = state_of(*optimizer, fused.clone(), division, true);
  optimizer->update(state, gradient, optimizer->scalars(1, 0.1, 1));
  for (const auto& rows : std::vector<std::vector<int64_t>>{{0, 1, 4, 5}, {2, 3, 6, 7}}) {
    const auto part = [&rows](const at::Tensor& x) { return x.index_select(0, at::tensor(rows)); };
    const auto alone = state_of(*optimizer, part(fused), whole(part(fused)), true);
    optimizer->update(alone, part(gradient), optimizer->scalars(1, 0.1, 1));
    EXPECT_TRUE(at::equal(part(state.value), alone.value));
  }
}

TEST(Muon, IsAdamWForAllElse) {
  const auto muon = make_optimizer(muon_job());
  auto job = muon_job();
  job.optimizer.name = "AdamW";
  const auto adamw = make_optimizer(job);
  const auto value = matrix_of(5, 7);
  const auto one = state_of(*muon, value.clone(), whole(value), false);
  const auto other = state_of(*adamw, value.clone(), whole(value), false);
  for (int64_t step = 1; step <= 3; ++step) {
    muon->update(one, matrix_of(5, 7, step), muon->scalars(step, 0.1, 0.5));
    adamw->update(other, matrix_of(5, 7, step), adamw->scalars(step, 0.1, 0.5));
  }
  EXPECT_TRUE(at::equal(one.value, other.value));
  EXPECT_EQ(one.slots.size(), 2u);
  EXPECT_EQ(state_of(*muon, value, whole(value), true).slots.size(), 1u);
}

}  // namespace
}  // namespace lockstep::trainer
