// Ops that draw, and those that make new tensors, have numbers instead of operands to be wrong: what LibTorch refuses,
// a mesh refuses, however its tensors lie and whatever plan is there already.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include <cmath>

#include "fuzz/cases/tensors.h"
#include "fuzz/trials/sharded_calls.h"
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
