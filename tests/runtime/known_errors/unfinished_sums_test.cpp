// Ops that took every rank's summand for the sum.
#include "tests/runtime/known_errors/on_mesh.h"

namespace lockstep::testing {
namespace {

TEST(PyTorch163193, AScalarIsAddedOnceAndNotOnceARank) {
  const OnMesh four({{"tp", 4}});
  const auto plain = at::arange(1, 11, c10::kFloat);
  const auto x = four.put(plain, "[tp=P(sum)]");
  expect_same(x + 1, plain + 1);
  expect_same(x - 1, plain - 1);
  expect_same(at::rsub(x, 1), 1 - plain);
  expect_same(at::add(x, at::scalar_tensor(1.F)), plain + 1);
  expect_same(x.clone().add_(1), plain + 1);
  expect_same(at::sum(x) + 10, at::sum(plain) + 10);
}

TEST(PyTorch149768, TheEpsilonOfClippingIsAddedOnce) {
  const OnMesh four({{"tp", 4}});
  const auto plain = at::arange(8, c10::kDouble);
  const auto coefficient = [](const at::Tensor& gradients) {
    const auto norm = at::linalg_vector_norm(gradients.square()).sqrt();
    return at::clamp_max(at::reciprocal(norm + 1e-6), 1.0);
  };
  for (const char* layout : {"[tp=P(sum)]", "[tp=S(0)]"}) {
    const auto ours = gather(coefficient(four.put(plain, layout))).item<double>();
    EXPECT_NEAR(ours, coefficient(plain).item<double>(), 1e-15) << layout;
  }
}

TEST(PyTorch153603, AFactorAfterAReductionIsThisCallsFactor) {
  const OnMesh two({{"tp", 2}});
  const auto plain = exact_tensor({4, 3});
  const auto x = two.put(plain, "[tp=S(0)]");
  for (const double factor : {2.0, 3.0, 0.5, -1.0}) expect_same(at::sum(x, 0) * factor, at::sum(plain, 0) * factor);
}

TEST(PyTorch165962, AMaximumIsThatOfTheWholeSum) {
  const OnMesh mesh({{"dp", 2}, {"tp", 2}});
  const auto plain = exact_tensor({4, 6});
  for (const char* layout : {"[dp=P(sum), tp=P(sum)]", "[dp=S(0), tp=P(sum)]", "[dp=P(avg), tp=S(1)]"}) {
    const auto x = mesh.put(plain, layout);
    expect_same(at::amax(x, 0), at::amax(plain, 0));
    expect_same(at::amin(x, {0, 1}), at::amin(plain, {0, 1}));
    expect_same(at::linalg_vector_norm(x, INFINITY), at::linalg_vector_norm(plain, INFINITY));
  }
}

TEST(PyTorch173937, BucketsAreThoseOfTheSum) {
  const OnMesh four({{"tp", 4}});
  const auto plain = exact_tensor({9}), borders = at::arange(-30, 30, 7, c10::kFloat);
  expect_same(at::bucketize(four.put(plain, "[tp=P(sum)]"), four.put(borders, "[]")), at::bucketize(plain, borders));
}

TEST(PyTorch183363, ACastRoundsTheSumAndNotTheSummands) {
  const OnMesh four({{"tp", 4}});
  const auto plain = at::arange(250, 350, c10::kFloat) + 0.375;
  const auto x = four.put(plain, "[tp=P(sum)]");
  expect_same(x.to(c10::kBFloat16), plain.to(c10::kBFloat16));
  expect_same(x.to(c10::kLong), plain.to(c10::kLong));
}

}  // namespace
}  // namespace lockstep::testing
