// The Hadamard transform beside a copy of its bytes and beside products of matrices; what quantised products are wrong
// by, turned and not.
#include <ATen/Functions.h>
#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>

#include "runtime/own_ops/mesh_ops.h"
#include "runtime/own_ops/quantized_linear.h"
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

/// |product - quantised product| / |product|, of float64.
double error_of(const Tensor& x, const Tensor& weight, const LinearQuantization& quantization) {
  const auto exact = at::linear(x.to(at::kDouble), weight.to(at::kDouble));
  const auto quantized = quantized_linear(x, weight, std::nullopt, quantization).to(at::kDouble);
  return ((quantized - exact).norm() / exact.norm()).item<double>();
}

/// Activations six of whose 1024 features are a hundred times the others, as those of large language models are
/// (T. Dettmers et al., "LLM.int8()", 2022, section 4), and weights without such.
NumericsCase error_case(const char* name, LinearRecipe recipe) {
  const auto title = fmt::format("quantized_error_{}_rotated", name);
  return {title, [=](const PairedOptions&) {
            const at::NoGradGuard no_gradients;
            at::manual_seed(1);
            auto x = at::randn({256, 1024});
            const auto weight = at::randn({512, 1024});
            x.slice(1, 0, 1024, 171).mul_(100);
            LinearQuantization plain, rotated;
            plain.recipe = rotated.recipe = recipe;
            rotated.rotated_block = 1024;
            const double ours = error_of(x, weight, rotated), peer = error_of(x, weight, plain);
            return BenchRow{title, ours, peer, "unrotated", ours / peer, "of the product", ours / peer, {}, {}};
          }};
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
  for (const auto& [name, recipe] : {std::pair{"tensorwise", LinearRecipe::kTensorwise},
                                     {"rowwise", LinearRecipe::kRowwise},
                                     {"mxfp8", LinearRecipe::kMxfp8},
                                     {"mxfp4", LinearRecipe::kMxfp4}})
    all.push_back(error_case(name, recipe));
  return all;
}

}  // namespace lockstep::bench
