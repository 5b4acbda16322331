// Gradients that counted a rank twice, or not at all; values that one rank alone knew.
#include "tests/runtime/known_errors/on_mesh.h"

namespace lockstep::testing {
namespace {

at::Tensor as_leaf(const at::Tensor& tensor) { return tensor.detach().requires_grad_(); }

TEST(PyTorch172932, FinishingASumAndCuttingItAnewKeepsItsGradient) {
  const OnMesh three({{"tp", 3}});
  const auto plain = exact_tensor({6, 2}), weights = exact_tensor({6, 2}, c10::kFloat, 17);
  for (const char* first : {"[tp=P(sum)]", "[tp=S(0)]", "[]"})
    for (const char* then : {"[]", "[tp=S(0)]", "[tp=S(1)]"}) {
      const auto x = as_leaf(three.put(plain, first));
      const auto moved = redistribute(redistribute(x, three.layout("[]")), three.layout(then));
      (moved * three.put(weights, then)).sum().backward();
      expect_same(x.grad(), weights);
    }
}

TEST(PyTorch115967, AGradientIsNotDividedByTheMeshsSize) {
  const OnMesh four({{"tp", 4}});
  const auto plain = exact_tensor({5});
  const auto x = as_leaf(from_shards(Shards(4, plain), four.layout("[]"), {5}, c10::kFloat));
  (redistribute(x, four.layout("[tp=S(0)]")) * 3).sum().backward();
  expect_same(x.grad(), at::full({5}, 3.F));
}

/// pytorch/torchtitan
TEST(Torchtitan2416, AWholeWeightsGradientIsThatOfAllRows) {
  const OnMesh mesh({{"dp", 2}, {"tp", 2}});
  const auto rows = exact_tensor({5, 3}), weight = exact_tensor({3, 4}, c10::kFloat, 13);
  const auto gradient = [](const at::Tensor& x, const at::Tensor& w) {
    const auto leaf = as_leaf(w);
    at::mm(x, leaf).sum().backward();
    return leaf.grad();
  };
  for (const char* cut : {"[dp=S(0)]", "[dp=S(0), tp=S(0)]", "[dp=S(1), tp=S(0)]", "[dp=P(sum)]"})
    expect_same(gradient(mesh.put(rows, cut), mesh.put(weight, "[]")), gradient(rows, weight));
}

/// pytorch/torchtitan
TEST(Torchtitan2217, ANormsWeightHasTheGradientOfTheWholeSequence) {
  const OnMesh two({{"tp", 2}});
  const auto x = at::arange(24, c10::kDouble).reshape({2, 3, 4}) / 7 - 1, weight = at::arange(1, 5, c10::kDouble);
  const auto gradient = [](const at::Tensor& input, const at::Tensor& w) {
    const auto leaf = as_leaf(w);
    (at::rms_norm(input, {4}, leaf, 1e-5) * input).sum().backward();
    return leaf.grad();
  };
  const auto expected = gradient(x, weight);
  for (const char* cut : {"[tp=S(1)]", "[tp=S(0)]", "[]"}) {
    const auto actual = gather(gradient(two.put(x, cut), two.put(weight, "[]")));
    EXPECT_TRUE(at::allclose(actual, expected, 1e-13, 1e-13)) << cut << actual << expected;
  }
}

TEST(PyTorch133499, ANormsBackwardGivesWhatIsAskedForAlone) {
  const OnMesh two({{"tp", 2}});
  const auto x = at::arange(24, c10::kDouble).reshape({6, 4}) / 7 - 1, upstream = exact_tensor({6, 4}, c10::kDouble);
  const auto weight = at::arange(1, 5, c10::kDouble), bias = at::zeros({4}, c10::kDouble);
  const auto backward = [&](const auto& put, std::array<bool, 3> mask) {
    const auto input = put(x, "[tp=S(0)]"), w = put(weight, "[]"), b = put(bias, "[]");
    const auto [y, mean, rstd] = at::native_layer_norm(input, {4}, w, b, 1e-5);
    return at::native_layer_norm_backward(put(upstream, "[tp=S(0)]"), input, {4}, mean, rstd, w, b, mask);
  };
  for (const std::array<bool, 3>& mask :
       {std::array{true, false, false}, {false, true, false}, {false, false, true}, {false, true, true}}) {
    const auto [x1, w1, b1] = backward([&](const at::Tensor& t, const char* l) { return two.put(t, l); }, mask);
    const auto [x2, w2, b2] = backward([](const at::Tensor& t, const char*) { return t; }, mask);
    for (const auto& [ours, plain] : {std::pair{x1, x2}, {w1, w2}, {b1, b2}}) {
      ASSERT_EQ(ours.defined(), plain.defined());
      if (plain.defined()) {
        EXPECT_TRUE(at::allclose(gather(ours), plain, 1e-12, 1e-12)) << gather(ours) << plain;
      }
    }
  }
}

TEST(PyTorch180346, ANumberIsTheWholeTensorsAndMeshesDoNotMix) {
  const OnMesh mesh({{"dp", 2}, {"tp", 2}});
  for (const char* layout : {"[dp=P(sum), tp=P(sum)]", "[dp=S(0)]", "[dp=S(0), tp=P(avg)]"})
    EXPECT_EQ(mesh.put(at::full({1}, 41.F), layout).item<float>(), 41) << layout;
  const auto whole = mesh.put(exact_tensor({4}), "[dp=S(0)]");
  const auto part = distribute(exact_tensor({4}), Layout::replicated(mesh.mesh.submesh("dp", 1)));
  EXPECT_THROW(at::add(at::linalg_vector_norm(whole), at::linalg_vector_norm(part)), BadInput);
}

}  // namespace
}  // namespace lockstep::testing
