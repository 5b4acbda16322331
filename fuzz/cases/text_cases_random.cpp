// How ops that draw are called. Their values are a mesh's own: the reference is a mesh of one rank.
#include "fuzz/cases/text_cases.h"

namespace lockstep::testing {
namespace {

using enum OpCase::Trait;

constexpr unsigned kDraws = kExact | kOwnPeer, kOfAnything = kDraws | kIntegers;
constexpr unsigned kMakes = kDraws | kFactory, kReals = kReal | kOwnPeer, kSlopes = kReals | kGradient;

/// The rows of runtime/planning/rules/random.cpp, but for those of op_cases_rows.cpp.
constexpr CallText kRows[] = {
    {"bernoulli.p", kOfAnything, "x 0.3"},
    {"bernoulli.Tensor", kReals | kWide, "x q~"},
    {"cauchy", kDraws, "x 1.0 2.0"},
    {"exponential", kDraws, "x 2.0"},
    {"geometric", kOfAnything, "x 0.2"},
    {"log_normal", kDraws, "x 0.5 0.25"},
    {"normal.Tensor_Tensor", kDraws, "x p~"},
    {"normal.Tensor_float", kDraws, "x 2.0"},
    {"normal.float_Tensor", kDraws, "1.0 p"},
    {"normal_functional", kDraws, "x 1.0 2.0"},
    {"random", kOfAnything, "x"},
    {"random.from", kOfAnything, "x -3 17"},
    {"random.to", kOfAnything, "x 100"},
    {"randperm.generator", kMakes, "0..20 none"},
};

constexpr CallText kDecomposed[] = {
    {"alpha_dropout", kSlopes, "x 0.3 true"},
    {"alpha_dropout_", kReals, "x 0.3 true"},
    {"bernoulli", kReals | kWide, "q"},
    {"dropout_", kReals, "x 0.3 true"},
    {"feature_alpha_dropout", kSlopes, "x:abc 0.3 true"},
    {"feature_alpha_dropout_", kReals, "x:abc 0.3 true"},
    {"feature_dropout", kSlopes, "x:abc 0.3 true"},
    {"feature_dropout_", kReals, "x:abc 0.3 true"},
    {"normal.float_float", kMakes, "1.0 2.0 <ab> none f64"},
    {"rand", kMakes, "<ab> f64"},
    {"rand.generator", kMakes, "<ab> none f64"},
    {"rand_like", kDraws, "x"},
    {"rand_like.generator", kDraws, "x none"},
    {"randint", kMakes, "10 <ab>"},
    {"randint.generator", kMakes, "10 <ab> none"},
    {"randint.low", kMakes, "-5 10 <ab>"},
    {"randint.low_generator", kMakes, "-5 10 <ab> none"},
    {"randint_like", kOfAnything, "x 10"},
    {"randint_like.generator", kOfAnything, "x 10 none"},
    {"randint_like.low_dtype", kOfAnything, "x -5 10"},
    {"randint_like.low_generator_dtype", kOfAnything, "x -5 10 none"},
    {"randn", kMakes, "<ab>"},
    {"randn.generator", kMakes, "<ab> none"},
    {"randn_like", kDraws, "x"},
    {"randn_like.generator", kDraws, "x none"},
    {"randperm", kMakes, "0..20"},
    {"rrelu", kSlopes, "x 0.1 0.5 true"},
    {"rrelu_", kReals, "x 0.1 0.5 true"},
    {"rrelu_with_noise", kReals, "x x 0.1 0.5 true"},
    {"rrelu_with_noise_", kReals, "x x 0.1 0.5 true"},
    {"rrelu_with_noise_backward", kReal, "x x p 0.1 0.5 true false"},
    {"rrelu_with_noise_functional", kReals, "x:ab x:ab 0.1 0.5 true"},
};

/// One row of weights, or several.
Stack draw_multinomial(Inputs& in) {
  auto sizes = in.sizes(0, 1);
  sizes.push_back(in.length(6));
  const bool replaces = in.flag();
  const auto samples = in.number(1, replaces ? 9 : sizes.back());
  return {in.positive(sizes), samples, replaces};
}

}  // namespace

std::vector<OpCase> random_cases() {
  std::vector<OpCase> all{{"multinomial", kDraws, draw_multinomial}};
  for (const auto& text : kRows) all.push_back(case_of(text));
  return all;
}

std::span<const CallText> random_decompositions() { return kDecomposed; }

}  // namespace lockstep::testing
