// The Hadamard transform beside a copy of its bytes and beside products of matrices; what quantised products are wrong
// by, turned and not.
#include <ATen/Functions.h>
#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>

#include "core/elementary/low_precision.h"
#include "models/quantized_linear.h"
#include "runtime/own_ops/mesh_ops.h"
#include "tools/bench/rows/numerics_rows.h"

namespace lockstep::bench {
namespace {

using at::Tensor;

constexpr int64_t kElements = int64_t{1} << 20;

/// Sylvester's matrix of n rows.
Tensor hadamard_matrix(int64_t n) {
  auto h = at::ones({1, 1});
  while (h.size(0) < n) h = at::cat({at::cat({h, h}, 1), at::cat({h, h.neg()}, 1)}, 0);
  return h;
}

/// The transform of a b elements as two products: those of b, then those of a (H(a b) is H(a) x H(b), Kronecker's).
struct Matrices {
  explicit Matrices(int64_t n) {
    int64_t rows = 1;
    while (rows * rows < n) rows *= 2;
    left = hadamard_matrix(n / rows), right = hadamard_matrix(rows);
  }
  Tensor operator()(const Tensor& x) const {
    const auto seen = x.view({-1, left.size(0), right.size(0)});
    return at::matmul(left, at::matmul(seen, right)).view(x.sizes());
  }
  Tensor left, right;
};

template <class Peer>
NumericsCase transform_case(const char* peer_name, int64_t n, c10::ScalarType dtype, const Peer& peer) {
  const auto name =
      fmt::format("hadamard_transform_{}x{}{}_{}", kElements / n, n, dtype == c10::kFloat ? "" : "_bf16", peer_name);
  return {name, [=](PairedOptions options) {
            at::set_num_threads(1);
            options.own_time = true;
            const at::NoGradGuard no_gradients;
            const auto x = at::randn({kElements / n, n}).to(dtype), out = at::empty_like(x);
            const auto other = peer(n);
            const auto timing =
                time_in_pairs([&] { mesh_ops::hadamard_transform(x, 0.125); }, [&] { other(x, out); }, options);
            return make_row(name, timing, peer_name, "ms", 1e3);
          }};
}

constexpr int64_t kSummands = 1024;

Tensor product_of(const Tensor& x, const Tensor& weight) {
  return at::linear(x.to(at::kDouble), weight.to(at::kDouble));
}

/// |product - quantised product| / |product|, in float64.
template <class Product>
double error_of(const Tensor& x, const Tensor& weight, const Product& quantized) {
  const auto exact = product_of(x, weight);
  const Tensor actual = quantized(x, weight);
  return at::norm(actual.to(at::kDouble) - exact).div(at::norm(exact)).item<double>();
}

/// Activations three in a hundred of whose elements are fifty times the others, and weights without such. `product`
/// takes factors and the block that they are turned by.
template <class Product>
NumericsCase error_case(const char* name, Product product) {
  const auto title = fmt::format("quantized_error_{}_rotated", name);
  return {title, [=](const PairedOptions&) {
            const at::NoGradGuard no_gradients;
            at::manual_seed(1);
            const auto x = at::randn({256, kSummands}) * at::where(at::rand({256, kSummands}) < 0.03, 50.0, 1.0);
            const auto weight = at::randn({512, kSummands});
            const auto error = [&](int64_t block) {
              return error_of(x, weight, [&](const Tensor& a, const Tensor& b) { return product(a, b, block); });
            };
            const double ours = error(kSummands), peer = error(0);
            return BenchRow{title, ours, peer, "unrotated", ours / peer, "of product", ours / peer, {}, {}};
          }};
}

NumericsCase recipe_case(const char* name, LinearRecipe recipe) {
  return error_case(name, [recipe](const Tensor& x, const Tensor& weight, int64_t block) {
    return quantized_linear(x, weight, std::nullopt, {recipe, block});
  });
}

/// Both factors as eight-bit integers with one scale a row.
Tensor product_of_integers(const Tensor& x, const Tensor& weight, int64_t block) {
  const auto integers = [block](const Tensor& factor) {
    const auto turned = block == 0 ? factor : mesh_ops::hadamard_transform(factor, 0.03125);  // of 1024
    return mesh_ops::quantize(turned, turned.abs().amax(-1, true),
                              static_cast<int64_t>(elementary::NumberFormat::kInt8), false);
  };
  return product_of(integers(x), integers(weight));
}

}  // namespace

std::vector<NumericsCase> low_precision_cases() {
  const auto copy = [](int64_t) { return [](const Tensor& x, const Tensor& out) { out.copy_(x); }; };
  const auto products = [](int64_t n) {
    return [matrices = Matrices(n)](const Tensor& x, const Tensor&) { matrices(x.to(at::kFloat)).to(x.scalar_type()); };
  };
  std::vector<NumericsCase> all;
  for (const int64_t n : {32, 256, 1024, 4096, 32768})
    for (const auto dtype : {c10::kFloat, c10::kBFloat16}) {
      if (dtype == c10::kBFloat16 && n != 1024) continue;
      all.push_back(transform_case("copy", n, dtype, copy));
      all.push_back(transform_case("products", n, dtype, products));
    }
  all.push_back(recipe_case("rowwise", LinearRecipe::kRowwise));
  all.push_back(recipe_case("mxfp8", LinearRecipe::kMxfp8));
  all.push_back(recipe_case("mxfp4", LinearRecipe::kMxfp4));
  all.push_back(error_case("int8", product_of_integers));
  return all;
}

}  // namespace lockstep::bench
