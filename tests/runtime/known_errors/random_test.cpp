// Random numbers that depended on the mesh, or came twice.
#include <set>

#include "tests/runtime/known_errors/on_mesh.h"

namespace lockstep::testing {
namespace {

/// What `draw` makes in the first draws of a step.
template <class Draw>
at::Tensor drawn(const std::vector<MeshAxis>& axes, std::string_view layout, c10::IntArrayRef sizes, const Draw& draw) {
  const OnMesh mesh(axes);
  RunContext::current().begin_microbatch(/*step=*/1, /*microbatch=*/0);
  const RandomScope random(/*seed=*/7);
  return gather(draw(mesh.put(at::ones(sizes), layout)));
}

TEST(PyTorch168058, CutsAndRanksChangeNoRandomNumber) {
  for (const auto& draw : std::initializer_list<std::function<at::Tensor(const at::Tensor&)>>{
           [](const at::Tensor& x) { return at::rand_like(x); }, [](const at::Tensor& x) { return at::randn_like(x); },
           [](const at::Tensor& x) { return at::dropout(x, 0.5, true); },
           [](const at::Tensor& x) { return at::bernoulli(x * 0.25); }}) {
    const auto expected = drawn({{"tp", 1}}, "[]", {6, 10}, draw);
    EXPECT_TRUE(same_bits(drawn({{"tp", 4}}, "[tp=S(0)]", {6, 10}, draw), expected));
    EXPECT_TRUE(same_bits(drawn({{"tp", 4}}, "[tp=S(1)]", {6, 10}, draw), expected));
    EXPECT_TRUE(same_bits(drawn({{"tp", 8}}, "[tp=S(1)]", {6, 10}, draw), expected));
    EXPECT_TRUE(same_bits(drawn({{"tp", 8}}, "[]", {6, 10}, draw), expected));
  }
}

TEST(PyTorch141212, NormalNumbersOnSeveralAxesAreThoseOfOne) {
  const auto draw = [](const at::Tensor& x) { return at::Tensor(x).normal_(1, 3); };
  const auto expected = drawn({{"tp", 1}}, "[]", {5, 7}, draw);
  for (const char* layout : {"[dp=S(0), tp=S(1)]", "[dp=S(1), tp=S(0)]", "[dp=S(0), tp=S(0)]", "[tp=S(1)]"})
    EXPECT_TRUE(same_bits(drawn({{"dp", 2}, {"tp", 3}}, layout, {5, 7}, draw), expected)) << layout;
}

TEST(PyTorch180088, NoDrawAndNoShardRepeatsAnother) {
  const auto draw = [](const at::Tensor& x) {
    const auto first = at::rand_like(x);
    return at::cat({first, at::rand_like(x)});
  };
  const auto all = drawn({{"tp", 4}}, "[tp=S(0)]", {40}, draw).to(c10::kDouble).contiguous();
  const std::set<double> values(all.const_data_ptr<double>(), all.const_data_ptr<double>() + all.numel());
  EXPECT_EQ(values.size(), 80U);  // of 2^24 values: two of 80 are equal with a chance of 2e-4, and the seed is fixed
}

}  // namespace
}  // namespace lockstep::testing
