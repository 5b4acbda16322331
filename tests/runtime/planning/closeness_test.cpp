// Canonical results against LibTorch's in float64. Bounds count roundings: a result of k of them, each of relative size
// u = 2^-24 at most, is off by k u / (1 - k u) of the sum of magnitudes at most (Higham, "Accuracy and Stability of
// Numerical Algorithms", lemma 3.1). Nothing is fitted.
#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <random>

#include "fuzz/cases/tensors.h"
#include "runtime/kernels/sums/sum_tree.h"
#include "runtime/own_ops/mesh_ops.h"
#include "runtime/redistribution/gather.h"
#include "tests/support/mutants.h"

namespace lockstep::testing {
namespace {

using at::Tensor;

constexpr double kUnit = 0x1p-24, kNarrowUnit = 0x1p-8;  ///< of float32 and bfloat16

/// Most roundings that one summand goes through: the chain of its leaf, whose first addition is exact, and the joins.
double roundings(const SumTree& tree) {
  return static_cast<double>(std::max<int64_t>(std::min(tree.leaf, tree.size) - 1, 0) + tree.height);
}
double roundings(int64_t size) { return roundings(SumTree::over_elements(size)); }

/// |actual - expected| is within k roundings of `magnitude`; `k` may be a tensor. `summands` bounds float64's own
/// error.
void expect_close(const Tensor& actual, const Tensor& expected, const Tensor& magnitude, const Tensor& k,
                  int64_t summands) {
  auto share = k * kUnit / (1 - k * kUnit) + static_cast<double>(summands + 8) * 0x1p-53;
  if (actual.scalar_type() == c10::kBFloat16) share = share + kNarrowUnit + share * kNarrowUnit;
  const auto error = (actual.to(c10::kDouble) - expected).abs(), bound = magnitude * share + 0x1p-120;
  if (error.le(bound).all().item<bool>()) return;
  RC_FAIL(fmt::format("an error of {:.3} times its bound", error.div(bound).max().item<double>()));
}
void expect_close(const Tensor& actual, const Tensor& expected, const Tensor& magnitude, double k, int64_t summands) {
  expect_close(actual, expected, magnitude, at::scalar_tensor(k, c10::kDouble), summands);
}

/// Numbers of mixed magnitude, and of both signs.
Tensor numbers(at::IntArrayRef sizes, int spread = 12) {
  const auto dtype = *rc::gen::weightedElement<c10::ScalarType>({{3, c10::kFloat}, {1, c10::kBFloat16}});
  std::mt19937 random(*rc::gen::arbitrary<uint32_t>());
  std::normal_distribution<float> normal;
  auto x = at::empty(sizes, c10::kFloat);
  for (int64_t i = 0; i < x.numel(); ++i)
    x.mutable_data_ptr<float>()[i] =
        std::ldexp(normal(random), static_cast<int>(random() % static_cast<unsigned>(spread)));
  return x.to(dtype);
}
Tensor numbers_like(const Tensor& other, at::IntArrayRef sizes, int spread = 12) {
  return numbers(sizes, spread).to(other.scalar_type());
}
Tensor wide(const Tensor& x) { return x.to(c10::kDouble); }

int64_t any_size(int64_t most) {
  return *rc::gen::weightedOneOf<int64_t>(
      {{1, rc::gen::inRange<int64_t>(1, 40)}, {2, rc::gen::inRange<int64_t>(1, most)}});
}

/// Runs ops on a mesh of one rank in canonical numerics.
class Canonical {
 public:
  Canonical() : world_(simulated_world({{"one", 1}}, options())), mesh_(world_->mesh("one=1")) {}
  Tensor put(const Tensor& plain) const { return distribute(plain, Layout::replicated(mesh_)); }

 private:
  static World::Options options() {
    World::Options options;
    options.numerics = lockstep::Numerics::kCanonical;
    return options;
  }
  std::unique_ptr<World> world_;
  const Mesh& mesh_;
};

// Each property takes the op, so that a wrong one can be put in.
using Unary = Tensor (*)(const Tensor&);
using Binary = Tensor (*)(const Tensor&, const Tensor&);

Tensor sum_of_rows(const Tensor& x) { return at::sum(x, {1}); }
Tensor mean_of_rows(const Tensor& x) { return at::mean(x, {1}); }
Tensor sum_of_all(const Tensor& x) { return at::sum(x); }

void sums_are_close(Unary sum) {
  const Canonical canonical;
  const auto x = numbers({any_size(4), any_size(3000)});
  const int64_t count = x.size(1);
  expect_close(gather(sum(canonical.put(x))), wide(x).sum(1), wide(x).abs().sum(1), roundings(count), count);
}
/// One more for the division.
void means_are_close(Unary mean) {
  const Canonical canonical;
  const auto x = numbers({any_size(4), any_size(3000)});
  const int64_t count = x.size(1);
  expect_close(gather(mean(canonical.put(x))), wide(x).mean(1), wide(x).abs().mean(1), roundings(count) + 1, count);
}
/// Nested: the last dimension in the middle one, that in samples.
void sums_of_all_are_close(Unary sum) {
  const Canonical canonical;
  const auto x = numbers({any_size(12), any_size(80), any_size(80)});
  const double k = roundings(x.size(2)) + roundings(x.size(1)) + roundings(SumTree::over_samples(x.size(0)));
  const auto result = gather(sum(canonical.put(x)));
  // Sums of sums are rounded to the dtype at the end alone.
  expect_close(result, wide(x).sum(), wide(x).abs().sum(), k, x.numel());
}

/// A chain of fma rounds its first product too.
void products_are_close(Binary product) {
  const Canonical canonical;
  const auto a = numbers({any_size(6), any_size(2000)}), b = numbers_like(a, {a.size(1), any_size(6)});
  expect_close(gather(product(canonical.put(a), canonical.put(b))), at::mm(wide(a), wide(b)),
               at::mm(wide(a).abs(), wide(b).abs()), roundings(a.size(1)) + 1, a.size(1));
}
void weight_gradients_are_close(Binary product) {
  const Canonical canonical;
  const auto g = numbers({any_size(9), any_size(200), 3}), x = numbers_like(g, {g.size(0), g.size(1), 4});
  const auto sum = [](const Tensor& a, const Tensor& b) { return at::einsum("abn,abk->nk", {a, b}); };
  const double k = roundings(g.size(1)) + 1 + roundings(SumTree::over_samples(g.size(0)));
  expect_close(gather(product(canonical.put(g), canonical.put(x))), sum(wide(g), wide(x)),
               sum(wide(g).abs(), wide(x).abs()), k, g.size(0) * g.size(1));
}

Tensor rms_norm(const Tensor& x, const Tensor& weight) { return std::get<0>(mesh_ops::rms_norm(x, weight, 1e-5)); }

/// Squares of a row: one rounding each, then 16 lanes or a rest of up to 15, then the 16 lanes; two for mean and
/// epsilon. The root halves relative errors; root, reciprocal and two products add four.
void norms_are_close(Binary norm) {
  const Canonical canonical;
  const auto x = numbers({3, any_size(1000)}), weight = numbers_like(x, {x.size(1)});
  const int64_t width = x.size(1);
  const auto expected = wide(x) / (wide(x).square().mean(1, true) + 1e-5).sqrt() * wide(weight);
  const double k = (1 + std::max<double>(15, static_cast<double>(width) / 16) + 16 + 2) / 2 + 4;
  expect_close(gather(norm(canonical.put(x), canonical.put(weight))), expected, expected.abs(), k, width);
}

Tensor softmax(const Tensor& x) { return at::_softmax(x, 1, false); }
Tensor log_softmax(const Tensor& x) { return at::_log_softmax(x, 1, false); }

/// x - max is rounded, which the exponential makes a relative error of as many units as the difference is large; the
/// exponential is off by one ulp, two units. So are the summands of the denominator. Then the division.
double exponential_roundings(const Tensor& x) { return (wide(x).amax(1) - wide(x).amin(1)).max().item<double>() + 2; }
void softmaxes_are_close(Unary op) {
  const Canonical canonical;
  const auto x = numbers({3, any_size(1500)}, 2);
  const auto expected = at::softmax(wide(x), 1);
  const double k = 2 * exponential_roundings(x) + roundings(x.size(1)) + 1;
  expect_close(gather(op(canonical.put(x))), expected, expected.abs(), k, x.size(1));
}
/// The sum's relative error is the logarithm's absolute one, beside an ulp of its own.
void log_softmaxes_are_close(Unary op) {
  const Canonical canonical;
  const auto x = numbers({3, any_size(1500)}, 2);
  const auto expected = at::log_softmax(wide(x), 1), shifted = wide(x) - wide(x).amax(1, true);
  const auto log_sum = shifted.logsumexp(1, true);
  const double k = 2 * exponential_roundings(x) + roundings(x.size(1));
  const auto magnitude = k + 2 * log_sum.abs() + expected.abs();  // in units
  expect_close(gather(op(canonical.put(x))), expected, magnitude.expand_as(expected), 1, x.size(1));
}

struct Queries {
  Tensor q, k, v;
};
using Attention = Tensor (*)(const Queries&);
Tensor attention(const Queries& in) { return at::scaled_dot_product_attention(in.q, in.k, in.v, {}, 0, true); }

/// A score's chain rounds once per element, the scale and its product once each: in y = score * log2(e) that is dy; a
/// weight 2^y has a relative error of ln(2) dy, and two units of exp2. Weights go through a chain over the keys, their
/// sum through 16 lanes and four joins; then the division. Weights below 2^-125 are left out.
void attentions_are_close(Attention op) {
  const Canonical canonical;
  const int64_t length = any_size(400), depth = any_size(30);
  const auto q = numbers({1, 2, length, depth}, 2), k = numbers_like(q, {1, 2, length, depth}, 2),
             v = numbers_like(q, {1, 2, length, depth});
  const double scale = 1 / std::sqrt(static_cast<double>(depth)), log2e = 1 / M_LN2,
               count = static_cast<double>(length);
  const auto mask = at::ones({length, length}, at::kBool).triu(1);
  const auto scores = at::matmul(wide(q), wide(k).transpose(2, 3));
  const auto weights = at::softmax((scores * scale).masked_fill(mask, -INFINITY), -1);
  const auto size = at::matmul(wide(q).abs(), wide(k).abs().transpose(2, 3)) * (scale * log2e);
  const auto dy = size * (static_cast<double>(depth) + 2);
  const auto per_weight = dy.masked_fill(mask, 0).amax(-1, true) * M_LN2 + 2;
  const auto roundings = 2 * per_weight + count + count / 16 + 4 + 1;
  expect_close(gather(op({canonical.put(q), canonical.put(k), canonical.put(v)})), at::matmul(weights, wide(v)),
               at::matmul(weights, wide(v).abs()) + count * 0x1p-100, roundings, length + depth);
}

Tensor product(const Tensor& a, const Tensor& b) { return at::mm(a, b); }

TEST(Closeness, Sums) {
  expect_holds([] { sums_are_close(sum_of_rows); });
}
TEST(Closeness, Means) {
  expect_holds([] { means_are_close(mean_of_rows); });
}
TEST(Closeness, SumsOfAll) {
  expect_holds([] { sums_of_all_are_close(sum_of_all); });
}
TEST(Closeness, Products) {
  expect_holds([] { products_are_close(product); });
}
TEST(Closeness, WeightGradients) {
  expect_holds([] { weight_gradients_are_close(mesh_ops::weight_gradient); });
}
TEST(Closeness, Norms) {
  expect_holds([] { norms_are_close(rms_norm); });
}
TEST(Closeness, Softmaxes) {
  expect_holds([] { softmaxes_are_close(softmax); });
}
TEST(Closeness, LogSoftmaxes) {
  expect_holds([] { log_softmaxes_are_close(log_softmax); });
}
TEST(Closeness, Attentions) {
  expect_holds([] { attentions_are_close(attention); });
}

/// Bounds that no error exceeds would prove nothing: ops that are a little off exceed them.
Tensor nudged(const Tensor& result) { return result * 1.0005; }
Tensor narrow(const Tensor& x) { return x.to(c10::kBFloat16).to(c10::kFloat); }

TEST(Closeness, NoticesWhatIsALittleOff) {
  expect_noticed("sums", [] { sums_are_close([](const Tensor& x) { return sum_of_rows(narrow(x)); }); });
  expect_noticed("means", [] { means_are_close([](const Tensor& x) { return mean_of_rows(x) * (1.0 + 1e-3); }); });
  expect_noticed("sums of all", [] { sums_of_all_are_close([](const Tensor& x) { return sum_of_all(narrow(x)); }); });
  expect_noticed("products", [] {
    products_are_close([](const Tensor& a, const Tensor& b) { return product(narrow(a), narrow(b)); });
  });
  expect_noticed("weight gradients", [] {
    weight_gradients_are_close(
        [](const Tensor& a, const Tensor& b) { return mesh_ops::weight_gradient(narrow(a), narrow(b)); });
  });
  expect_noticed("norms", [] {
    norms_are_close([](const Tensor& x, const Tensor& weight) { return nudged(rms_norm(x, weight)); });
  });
  expect_noticed("softmaxes", [] { softmaxes_are_close([](const Tensor& x) { return nudged(softmax(x)); }); });
  expect_noticed("log-softmaxes",
                 [] { log_softmaxes_are_close([](const Tensor& x) { return nudged(log_softmax(x)); }); });
  expect_noticed("attention", [] {
    attentions_are_close([](const Queries& in) { return attention({in.q * 1.001, in.k, in.v}); });
  });
}

}  // namespace
}  // namespace lockstep::testing
