// Ops that draw, and those that make new tensors, have numbers instead of operands to be wrong: what LibTorch refuses,
// a mesh refuses, however its tensors lie and whatever plan is there already.
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include <cmath>

#include "fuzz/calls/sharded_calls.h"
#include "fuzz/cases/tensors.h"
#include "runtime/context/scopes.h"

namespace lockstep::testing {
namespace {

struct Numbers {
  const char* op;
  std::function<at::Tensor(const at::Tensor&, double)> call;
  double right;
  std::vector<double> wrong;
};

const std::vector<Numbers>& all_numbers() {
  constexpr double kNan = NAN, kInfinity = INFINITY;
  const auto made = [](const at::Tensor& x) { return x.options(); };
  static const std::vector<Numbers> all = {
      {"native_dropout",
       [](auto& x, double p) { return std::get<0>(at::native_dropout(x, p, true)); },
       0.5,
       {-0.1, 1.1, kNan}},
      {"dropout", [](auto& x, double p) { return at::dropout(x, p, true); }, 0.5, {-0.1, 1.1, kNan}},
      {"normal_ std", [](auto& x, double std) { return x.clone().normal_(0, std); }, 1, {-1, kNan}},
      {"uniform_ to", [](auto& x, double to) { return x.clone().uniform_(1, to); }, 2, {0.5, kNan, kInfinity}},
      {"bernoulli_", [](auto& x, double p) { return x.clone().bernoulli_(p); }, 0.5, {-0.1, 1.1, kNan}},
      {"cauchy_ sigma", [](auto& x, double sigma) { return x.clone().cauchy_(0, sigma); }, 1, {0, -1, kNan}},
      {"exponential_", [](auto& x, double rate) { return x.clone().exponential_(rate); }, 1, {0, -1, kNan}},
      {"geometric_", [](auto& x, double p) { return x.clone().geometric_(p); }, 0.5, {0, 1, -0.5, 1.5, kNan}},
      {"log_normal_ std", [](auto& x, double std) { return x.clone().log_normal_(0, std); }, 1, {0, -1, kNan}},
      {"normal of a tensor", [](auto& x, double std) { return at::normal(x, std); }, 1, {-1, kNan}},
      {"multinomial", [](auto& x, double n) { return at::multinomial(x.abs() + 1, std::lround(n)); }, 6, {0, -1, 7}},
      {"random_ to", [](auto& x, double to) { return x.clone().random_(std::lround(to)); }, 2, {0, -3}},
      {"random_ from", [](auto& x, double from) { return x.clone().random_(std::lround(from), 5); }, 4, {5, 6}},
      {"random_ of 8 bits",
       [](auto& x, double to) { return x.to(c10::kChar).random_(0, std::lround(to)); },
       128,
       {129, -1}},
      {"randint", [=](auto& x, double high) { return at::randint(std::lround(high), {3}, made(x)); }, 4, {0, -1}},
      {"randint_like", [](auto& x, double high) { return at::randint_like(x, std::lround(high)); }, 4, {0, -1}},
      {"randn", [=](auto& x, double n) { return at::randn({std::lround(n)}, made(x)); }, 3, {-1}},
      {"randperm", [=](auto& x, double n) { return at::randperm(std::lround(n), made(x)); }, 3, {-1}},
      {"rrelu", [](auto& x, double upper) { return at::rrelu(x, 0.1, upper, true); }, 0.5, {0.05, kInfinity}},
      {"alpha_dropout", [](auto& x, double p) { return at::alpha_dropout(x, p, true); }, 0.5, {-0.1, 1.1, kNan}},
      {"feature_dropout", [](auto& x, double p) { return at::feature_dropout(x, p, true); }, 0.5, {-0.1, 1.1, kNan}},
      {"arange end", [=](auto& x, double end) { return at::arange(end, made(x)); }, 3, {-1, kNan, kInfinity}},
      {"arange start", [=](auto& x, double start) { return at::arange(start, 3, made(x)); }, 1, {4, kNan, -kInfinity}},
      {"arange step", [=](auto& x, double step) { return at::arange(1, 3, step, made(x)); }, 1, {0, -1, kNan}},
      {"zeros",
       [=](auto& x, double n) {
         return at::zeros({2, std::lround(n)}, made(x));
       },
       3,
       {-1}},
      {"ones",
       [=](auto& x, double n) {
         return at::ones({2, std::lround(n)}, made(x));
       },
       3,
       {-1}},
      {"full", [=](auto& x, double n) { return at::full({std::lround(n)}, 5, made(x)); }, 3, {-1}},
      {"empty", [=](auto& x, double n) { return at::empty({std::lround(n)}, made(x)); }, 3, {-1}},
      {"empty_strided",
       [=](auto& x, double n) {
         return at::empty_strided({2, 3}, {std::lround(n), 1}, made(x));
       },
       3,
       {-1}},
      {"empty_strided sizes",
       [=](auto& x, double n) {
         return at::empty_strided({std::lround(n)}, {1, 1}, made(x));
       },
       NAN,
       {3}},
      {"new_zeros", [](auto& x, double n) { return x.new_zeros({std::lround(n)}); }, 3, {-1}},
      {"new_ones", [](auto& x, double n) { return x.new_ones({std::lround(n)}); }, 3, {-1}},
      {"new_empty", [](auto& x, double n) { return x.new_empty({std::lround(n)}); }, 3, {-1}},
      {"new_empty_strided", [](auto& x, double n) { return x.new_empty_strided({2}, {std::lround(n)}); }, 1, {-1}},
  };
  return all;
}

class DrawRefusal : public ::testing::TestWithParam<const char*> {};

TEST_P(DrawRefusal, OfWrongNumbersIsOneDevices) {
  const auto world = simulated_world({{"dp", 2}, {"tp", 3}});
  const auto& mesh = world->mesh("dp=2,tp=3");
  const MeshScope scope(mesh);
  const RandomScope seed(7);
  const auto plain = exact_tensor({4, 6});
  const auto x = distribute(plain, Layout::parse(mesh, GetParam()));
  for (const auto& each : all_numbers()) {
    if (!std::isnan(each.right)) EXPECT_EQ(each.call(x, each.right).sizes(), each.call(plain, each.right).sizes());
    for (const double number : each.wrong) {
      EXPECT_TRUE(refuses([&] { each.call(plain, number); })) << each.op << " " << number << ": one device takes it";
      EXPECT_TRUE(refuses([&] { each.call(x, number); })) << each.op << " " << number << ": the mesh takes it";
    }
  }
}

/// Parameters that are tensors have one element that is wrong, on one of the ranks.
TEST_P(DrawRefusal, OfWrongElementsIsOneDevices) {
  const auto world = simulated_world({{"dp", 2}, {"tp", 3}});
  const auto layout = Layout::parse(world->mesh("dp=2,tp=3"), GetParam());
  const RandomScope seed(7);
  const auto refused = [&](const auto& call, double wrong, const char* op) {
    auto plain = at::full({4, 6}, 0.5);
    EXPECT_FALSE(refuses([&] { call(distribute(plain, layout)); })) << op;
    plain[3][4] = wrong;
    EXPECT_TRUE(refuses([&] { call(plain); })) << op << " " << wrong << ": one device takes it";
    EXPECT_TRUE(refuses([&] { call(distribute(plain, layout)); })) << op << " " << wrong << ": the mesh takes it";
  };
  for (const double wrong : {-0.1, 1.1, std::nan("")}) {
    refused([](const at::Tensor& p) { return at::bernoulli(p); }, wrong, "bernoulli");
    refused([](const at::Tensor& p) { return at::empty_like(p).bernoulli_(p); }, wrong, "bernoulli_");
  }
  refused([](const at::Tensor& deviation) { return at::normal(2, deviation); }, -1, "normal");
  refused([](const at::Tensor& deviation) { return at::normal(at::ones_like(deviation), deviation); }, -1, "normal");
  for (const double wrong : {-1.0, std::nan(""), double{INFINITY}})
    for (const bool replaces : {false, true})
      refused([=](const at::Tensor& weights) { return at::multinomial(weights, 2, replaces); }, wrong, "multinomial");
}

TEST_P(DrawRefusal, OfARowWithoutWeightsIsOneDevices) {
  const auto world = simulated_world({{"dp", 2}, {"tp", 3}});
  const auto layout = Layout::parse(world->mesh("dp=2,tp=3"), GetParam());
  const RandomScope seed(7);
  auto plain = at::ones({4, 6});
  plain.select(0, 2).zero_();
  const auto weights = distribute(plain, layout);
  for (const bool replaces : {false, true}) {
    EXPECT_TRUE(refuses([&] { at::multinomial(plain, 2, replaces); })) << "one device";
    EXPECT_TRUE(refuses([&] { at::multinomial(weights, 2, replaces); })) << "the mesh";
  }
}

/// A mesh would not ask it.
TEST_P(DrawRefusal, OfAGenerator) {
  const auto world = simulated_world({{"dp", 2}, {"tp", 3}});
  const RandomScope seed(7);
  const auto x = distribute(at::ones({4, 6}), Layout::parse(world->mesh("dp=2,tp=3"), GetParam()));
  const auto generator = at::detail::createCPUGenerator();
  EXPECT_TRUE(refuses([&] { x.clone().normal_(0, 1, generator); }));
  EXPECT_TRUE(refuses([&] { at::bernoulli(x, generator); }));
  EXPECT_TRUE(refuses([&] { at::multinomial(x, 2, false, generator); }));
}

INSTANTIATE_TEST_SUITE_P(Layouts, DrawRefusal,
                         ::testing::Values("[dp=R, tp=R]", "[dp=S(0), tp=S(1)]", "[dp=S(1), tp=R]"));

/// LibTorch takes an interval without a length.
TEST(Draws, FromAnEmptyIntervalAreItsBound) {
  const auto world = simulated_world({{"tp", 2}});
  const auto& mesh = world->mesh("tp=2");
  const RandomScope seed(7);
  const auto x = distribute(exact_tensor({5, 3}), Layout::parse(mesh, "[tp=S(0)]"));
  x.uniform_(1.5, 1.5);
  EXPECT_EQ(difference(x, at::full({5, 3}, 1.5), {}, true), "");
}

}  // namespace
}  // namespace lockstep::testing
