#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/elementary/elementary.h"
#include "fuzz/cases/tensors.h"
#include "runtime/kernels/rows/row_loops.h"
#include "runtime/own_ops/mesh_ops.h"
#include "runtime/redistribution/gather.h"

namespace lockstep {
namespace {

using at::Tensor;
using testing::same_bits;

constexpr auto kDouble = c10::kDouble;

double worst(const Tensor& a, const Tensor& b) { return (a - b).abs().max().item<double>(); }

/// Values and the gradient of `input` under sum(f(input)^2).
template <class Function>
std::pair<Tensor, Tensor> with_gradient(Tensor input, const Function& f) {
  input.requires_grad_();
  const auto output = f(input);
  output.mul(output).sum().backward();
  return {output.detach(), input.grad()};
}

Tensor plain_swiglu(const Tensor& both) { return at::silu(both.select(-2, 0)) * both.select(-2, 1); }

Tensor plain_rotation(const Tensor& x, const Tensor& cosines, const Tensor& sines) {
  const auto pairs = at::view_as_complex(x.contiguous().unflatten(-1, {-1, 2}));
  return at::view_as_real(pairs * at::complex(cosines, sines)).flatten(3);
}

class FusedOps : public ::testing::Test {
 protected:
  Tensor put(const Tensor& plain, const char* layout) { return distribute(plain, Layout::parse(mesh_, layout)); }

  std::unique_ptr<World> world_ = testing::simulated_world({{"dp", 2}, {"tp", 2}});
  const Mesh& mesh_ = world_->mesh("dp=2,tp=2");
  const Tensor both_ = at::randn({2, 3, 4, 2, 19}, kDouble);
  const Tensor heads_ = at::randn({2, 5, 4, 6}, kDouble).transpose(1, 2);  // [batch, heads, length, size] seen by rows
  const Tensor angles_ = at::rand({5, 3}, kDouble), cosines_ = angles_.cos(), sines_ = angles_.sin();
};

TEST_F(FusedOps, SwigluIsTheGatedProduct) {
  const auto [value, gradient] = with_gradient(both_.clone(), mesh_ops::swiglu);
  const auto [expected, expected_gradient] = with_gradient(both_.clone(), plain_swiglu);
  EXPECT_LT(worst(value, expected), 1e-14);
  EXPECT_LT(worst(gradient, expected_gradient), 1e-13);
}

TEST_F(FusedOps, SwigluGivesTheSameBitsOnAnyLayout) {
  const auto [expected, expected_gradient] = with_gradient(both_.clone(), mesh_ops::swiglu);
  for (const char* layout : {"[]", "[dp=S(0)]", "[dp=S(0), tp=S(2)]", "[tp=S(4)]"}) {
    const auto [value, gradient] = with_gradient(put(both_, layout), mesh_ops::swiglu);
    EXPECT_TRUE(same_bits(gather(value), expected)) << layout;
    EXPECT_TRUE(same_bits(gather(gradient), expected_gradient)) << layout;
  }
}

TEST_F(FusedOps, RotationTurnsPairsByTheirAngle) {
  const auto turn = [&](const Tensor& x) { return mesh_ops::rotate_pairs(x, cosines_, sines_); };
  const auto expect = [&](const Tensor& x) { return plain_rotation(x, cosines_, sines_); };
  const auto [value, gradient] = with_gradient(heads_.clone(), turn);
  const auto [expected, expected_gradient] = with_gradient(heads_.clone(), expect);
  EXPECT_LT(worst(value, expected), 1e-14);
  EXPECT_LT(worst(gradient, expected_gradient), 1e-13);
  EXPECT_LT(worst(mesh_ops::rotate_pairs(turn(heads_), cosines_, sines_, /*back=*/true), heads_), 1e-14);
}

TEST_F(FusedOps, RotationGivesTheSameBitsOnAnyLayout) {
  const auto expected = mesh_ops::rotate_pairs(heads_, cosines_, sines_);
  for (const char* layout : {"[]", "[dp=S(0), tp=S(1)]", "[tp=S(2)]", "[dp=S(2), tp=S(0)]"}) {
    const auto turned = mesh_ops::rotate_pairs(put(heads_, layout), put(cosines_, "[]"), put(sines_, "[]"));
    EXPECT_TRUE(same_bits(gather(turned), expected)) << layout;
    EXPECT_EQ(layout_of(turned).text(), Layout::parse(mesh_, layout).text());
  }
}

TEST_F(FusedOps, HeadsMergeWithoutACopyAfterAttention) {
  const auto x = put(heads_.to(c10::kFloat), "[dp=S(0), tp=S(1)]");
  const auto mixed = at::scaled_dot_product_attention(x, x, x, {}, 0, true).transpose(1, 2);
  EXPECT_TRUE(mixed.is_contiguous());
  const auto merged = mixed.view({2, 5, 24});
  EXPECT_EQ(sharded(merged).shards()->whole()[0].const_data_ptr(),
            sharded(mixed).shards()->whole()[0].const_data_ptr());
}

/// The loop that runs on vectors against the same formula one element at a time.
/// LibTorch's fused kernel, which native numerics uses, has one size of heads; LibTorch itself has another way, too.
TEST_F(FusedOps, ValuesMayHaveHeadsOfAnotherSize) {
  const auto attend = [&](const Tensor& values) {
    return [&](const Tensor& x) { return at::scaled_dot_product_attention(x, x, values, {}, 0, true); };
  };
  const auto heads = heads_.contiguous(), values = at::randn({2, 4, 5, 3}, kDouble);
  const auto [expected, expected_gradient] = with_gradient(heads.clone(), attend(values));
  for (const char* layout : {"[]", "[dp=S(0), tp=S(1)]"}) {
    const auto [output, gradient] = with_gradient(put(heads, layout), attend(put(values, layout)));
    EXPECT_LT(worst(gather(output), expected), 1e-14) << layout;
    EXPECT_LT(worst(gather(gradient), expected_gradient), 1e-13) << layout;
  }
}

TEST(Loops, AdamwGivesTheBitsOfTheFormula) {
  const kernels::loops::AdamwStep<float> s{0.7f, 0.99f, 0.9f, 0.1f, 0.95f, 0.05f, 1e-3f, 0.3f, 1e-8f};
  const auto p = at::randn({133}), g = at::randn({133}), m = at::randn({133}), v = at::rand({133});
  auto expected = at::empty({133});
  for (int64_t i = 0; i < 133; ++i) {
    const float gradient = g[i].item<float>() * s.gradient_scale;
    const float mean = m[i].item<float>() * s.beta1 + gradient * s.rest1;
    const float square = v[i].item<float>() * s.beta2 + gradient * gradient * s.rest2;
    expected[i] =
        p[i].item<float>() * s.decay - s.step_size * mean / (std::sqrt(square) / s.root_correction + s.epsilon);
  }
  kernels::loops::adamw(133, p.mutable_data_ptr<float>(), g.const_data_ptr<float>(), m.mutable_data_ptr<float>(),
                        v.mutable_data_ptr<float>(), s);
  EXPECT_TRUE(same_bits(p, expected));
}

TEST(Loops, CrossEntropyBackwardGivesTheBitsOfTheFormula) {
  const auto logits = at::randn({2, 77}), gradient = at::rand({2}), shift = at::randn({2});
  const auto target = at::tensor({5, -1}, at::kLong);
  auto expected = at::empty({2, 77}), actual = at::empty({2, 77});
  for (int64_t r = 0; r < 2; ++r)
    for (int64_t c = 0; c < 77; ++c) {
      const float g = gradient[r].item<float>();
      const float term = elementary::normal_exp(logits[r][c].item<float>() - shift[r].item<float>()) * g;
      expected[r][c] = r == 0 && c == 5 ? term - g : term;
    }
  kernels::loops::cross_entropy_backward<float>({2, 77}, gradient.const_data_ptr<float>(),
                                                logits.const_data_ptr<float>(), shift.const_data_ptr<float>(),
                                                target.const_data_ptr<int64_t>(), actual.mutable_data_ptr<float>());
  EXPECT_TRUE(same_bits(actual, expected));
}

/// fp32 losses of 16-bit logits: the bits of their copy in fp32, the gradient's but for its rounding.
TEST(TokenLosses, OfNarrowLogitsAreThoseOfWideOnes) {
  for (const auto numerics : {Numerics::kNative, Numerics::kCanonical}) {
    const auto world = testing::simulated_world({{"dp", 2}, {"tp", 3}}, {.numerics = numerics});
    const auto& mesh = world->mesh("dp=2,tp=3");
    const auto logits = at::randn({6, 301}).mul_(4).to(c10::kBFloat16);
    const auto labels = at::tensor({300, 0, 17, -100, 200, 99}, at::kLong);
    for (const char* layout : {"[]", "[dp=S(0), tp=S(1)]", "[tp=S(1)]", "[dp=S(0)]"}) {
      const auto losses = [&](const Tensor& x) {
        const auto on_mesh = distribute(labels, Layout::parse(mesh, "[]"));
        return with_gradient(distribute(x, Layout::parse(mesh, layout)), [&](const Tensor& each) {
          return mesh_ops::token_losses(each, on_mesh, -100, c10::kFloat);
        });
      };
      const auto [narrow, narrow_gradient] = losses(logits);
      const auto [wide, wide_gradient] = losses(logits.to(c10::kFloat));
      EXPECT_EQ(narrow.scalar_type(), c10::kFloat);
      EXPECT_EQ(narrow_gradient.scalar_type(), c10::kBFloat16);
      EXPECT_TRUE(same_bits(gather(narrow), gather(wide))) << layout;
      EXPECT_TRUE(same_bits(gather(narrow_gradient), gather(wide_gradient).to(c10::kBFloat16))) << layout;
    }
  }
}

}  // namespace
}  // namespace lockstep
