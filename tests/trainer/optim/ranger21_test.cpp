// Ranger21 beside a plain reading of Wright and Demeure (2021, arXiv 2106.13731), in double: all components, each one
// left out, none.
#include "trainer/optim/ranger21.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include <cmath>

#include "trainer/job/job.h"

namespace lockstep::trainer {
namespace {

constexpr double kRate = 0.05, kScale = 0.5, kDecay = 0.1, kBeta0 = 0.9, kBeta1 = 0.9, kBeta2 = 0.95, kEps = 1e-8;

/// One parameter of the plain reading.
struct Plain {
  at::Tensor value, slow, mean, previous, square, largest;
  explicit Plain(const at::Tensor& start)
      : value(start.clone()),
        slow(start.clone()),
        mean(at::zeros_like(start)),
        previous(at::zeros_like(start)),
        square(at::zeros_like(start)),
        largest(at::zeros_like(start)) {}

  static at::Tensor norms(const at::Tensor& x) {
    return x.dim() < 2 ? x.pow(2).sum().sqrt() : x.pow(2).sum({1}, true).sqrt();
  }

  at::Tensor transformed(at::Tensor g, const Ranger21Section& has) const {
    if (has.gradient_clipping) {
      const auto limit = 0.01 * norms(value).clamp_min(1e-3), length = norms(g);
      g = at::where(length > limit, g * limit / length.clamp_min(1e-6), g);
    }
    if (has.gradient_centralisation && g.dim() > 1) g = g - g.mean({1}, true);
    if (has.gradient_normalisation && g.numel() > 2) g = g / (g.std(/*unbiased=*/true) + 1e-8);
    return g;
  }

  /// Returns V of this step.
  at::Tensor take(const at::Tensor& g, const Ranger21Section& has) {
    square = kBeta2 * square + (1 - kBeta2) * g * g;
    if (!has.positive_negative_momentum) {
      mean = kBeta1 * mean + (1 - kBeta1) * g;
      return square;
    }
    const auto next = kBeta1 * kBeta1 * previous + (1 - kBeta1 * kBeta1) * g;
    previous = mean, mean = next;
    largest = at::maximum(largest, square);
    return largest;
  }

  void move(const at::Tensor& second, double root, int64_t step, const Ranger21Section& has) {
    auto first = mean / (1 - std::pow(kBeta1, step));
    if (has.positive_negative_momentum)
      first = ((1 + kBeta0) * mean - kBeta0 * previous) / (1 - std::pow(kBeta1, step)) / std::hypot(1 + kBeta0, kBeta0);
    auto below = (second / (1 - std::pow(kBeta2, step))).sqrt() + kEps;
    if (has.softplus) below = (1 + (50 * below).exp()).log() / 50;
    auto decayed = kDecay * value;
    if (has.stable_weight_decay) decayed = decayed / (root + kEps);
    if (has.norm_loss) decayed = decayed * (1 - 1 / (norms(value) + kEps));
    value = value - kRate * first / below - kRate * decayed;
    if (has.lookahead && step % 5 == 0) value = slow = 0.5 * slow + 0.5 * value;
  }
};

at::Tensor start_of(at::IntArrayRef sizes) {
  int64_t count = 1;
  for (const auto size : sizes) count *= size;
  return at::cos(at::arange(count, at::kDouble)).mul(0.3).view(sizes);
}
at::Tensor gradient_of(const at::Tensor& value, int64_t step) {
  return at::sin(at::arange(value.numel(), at::kDouble).add(step * 3 + value.dim())).view(value.sizes());
}

const std::vector<std::vector<int64_t>> kSizes = {{5, 7}, {6}, {1, 3}, {}, {2}};

/// Six steps of a matrix, a vector, a row, a scalar and two elements.
void expect_like_the_paper(const Ranger21Section& has) {
  Job job;
  job.optimizer.name = "Ranger21";
  job.ranger21 = has;
  const auto optimizer = make_optimizer(job);
  std::vector<ParameterState> ours;
  std::vector<Plain> theirs;
  double elements = 0;
  for (const auto& sizes : kSizes) {
    const auto start = start_of(sizes);
    const auto rows = sizes.empty() ? 1 : sizes[0];
    auto& state = ours.emplace_back(
        ParameterState{"weight",
                       start.clone(),
                       true,
                       {},
                       models::Division(sizes.empty() ? std::vector<int64_t>{1} : sizes, {{"w", rows, {}}})});
    state.slots = new_slots(*optimizer, state);
    theirs.emplace_back(start);
    elements += static_cast<double>(start.numel());
  }
  for (int64_t step = 1; step <= 6; ++step) {
    auto scalars = optimizer->scalars(step, kRate, kScale);
    double squares = 0, seconds = 0;
    std::vector<at::Tensor> second;
    for (size_t p = 0; p < ours.size(); ++p) {
      const auto gradient = gradient_of(ours[p].value, step);
      const auto measured = optimizer->measure(ours[p], gradient, scalars);
      EXPECT_EQ(measured.defined(), has.stable_weight_decay);
      if (measured.defined()) squares += measured.pow(2).sum().item<double>();
      second.push_back(theirs[p].take(theirs[p].transformed(kScale * gradient, has), has));
      seconds += second.back().sum().item<double>() / (1 - std::pow(kBeta2, step));
    }
    scalars.push_back({kMeasuredRoot, std::sqrt(squares / elements)});
    for (size_t p = 0; p < ours.size(); ++p) {
      optimizer->update(ours[p], gradient_of(ours[p].value, step), scalars);
      theirs[p].move(second[p], std::sqrt(seconds / elements), step, has);
      EXPECT_LT((ours[p].value - theirs[p].value).abs().max().item<double>(), 1e-10) << "step " << step << ", " << p;
    }
  }
}

TEST(Ranger21, IsItsPapersWithAllComponents) { expect_like_the_paper({}); }

TEST(Ranger21, IsItsPapersWithoutAnyOne) {
  constexpr bool Ranger21Section::*kComponents[] = {&Ranger21Section::gradient_clipping,
                                                    &Ranger21Section::gradient_centralisation,
                                                    &Ranger21Section::gradient_normalisation,
                                                    &Ranger21Section::positive_negative_momentum,
                                                    &Ranger21Section::norm_loss,
                                                    &Ranger21Section::stable_weight_decay,
                                                    &Ranger21Section::lookahead,
                                                    &Ranger21Section::softplus};
  Ranger21Section none;
  for (const auto component : kComponents) {
    Ranger21Section has;
    has.*component = none.*component = false;
    expect_like_the_paper(has);
  }
  expect_like_the_paper(none);
}

TEST(Ranger21, KeepsOnlyWhatItsComponentsNeed) {
  const auto names = [](const Ranger21Section& has) {
    Job job;
    job.ranger21 = has;
    std::string text;
    const ParameterState any{"weight", {}, true, {}, models::Division({1}, {{"weight", 1, {}}})};
    for (const auto& kind : make_ranger21(job)->slots(any)) text += fmt::format("{} ", kind.name);
    return text;
  };
  EXPECT_EQ(names({}), "mean square previous_mean largest_square slow ");
  EXPECT_EQ(names({.positive_negative_momentum = false}), "mean square slow ");
  EXPECT_EQ(names({.positive_negative_momentum = false, .lookahead = false}), "mean square ");
}

}  // namespace
}  // namespace lockstep::trainer
