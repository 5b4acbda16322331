// Norms, softmax, tables, losses, gates, elementwise arithmetic and the optimizer.
#include <ATen/Functions.h>
#include <fmt/format.h>

#include <cmath>

#include "runtime/own_ops/mesh_ops.h"
#include "runtime/redistribution/gather.h"
#include "runtime/tensor/sharded_tensor.h"
#include "tests/support/cases/golden_ops.h"

namespace lockstep::testing {
namespace {

using at::Tensor;
using Tensors = std::vector<Tensor>;
using Sizes = std::vector<int64_t>;

/// Less than the 16 lanes of a row, one leaf, leaves that are not full.
const Sizes kRowWidths = {1, 15, 31, 64, 65, 300, 1000};
const Sizes kGateWidths = {1, 15, 300};
constexpr int64_t kIgnored = -100;

/// An integer of a row each, in [0, most), on the mesh of `like`.
Tensor integers_beside(const Tensor& like, int64_t most) {
  return distribute(at::arange(like.size(0)).mul(7).add(3).remainder(most), layout_of(like));
}

/// The same, of which the second is `other`.
Tensor classes_beside(const Tensor& logits, int64_t other) {
  auto classes = at::arange(logits.size(0)).mul(7).add(3).remainder(logits.size(1));
  classes[1] = other;
  return distribute(classes, layout_of(logits));
}

std::vector<Sizes> one_matrix(int64_t n) { return {{4, n}}; }
std::vector<Sizes> two_matrices(int64_t n) { return {{4, n}, {4, n}}; }
std::vector<Sizes> three_matrices(int64_t n) { return {{4, n}, {4, n}, {4, n}}; }
std::vector<Sizes> matrix_and_two_vectors(int64_t n) { return {{4, n}, {4}, {4}}; }

/// The operand, larger multiples of it, and what lies at the ends: zeros, infinities, NaN, the least and the largest
/// numbers of float.
Tensor spread(const Tensor& x) {
  constexpr double kEnds[] = {0.0,      -0.0,      INFINITY, -INFINITY,      NAN,
                              0x1p-149, -0x1p-149, 0x1p-126, 0x1.fffffep127, -0x1.fffffep127};
  const auto plain = gather(x), ends = at::tensor(at::ArrayRef<double>(kEnds), at::kDouble).to(plain.scalar_type());
  return distribute(at::cat({plain, at::mul(plain, 16), at::mul(plain, 4096), ends}), layout_of(x));
}

template <Tensor (*kFunction)(const Tensor&)>
Tensors of_spread(const Tensors& x) {
  return {kFunction(spread(x[0]))};
}

Tensor gelu(const Tensor& x) { return at::gelu(x); }

}  // namespace

std::vector<GoldenOp> golden_rows() {
  return {
      {"rows.rms_norm", kRowWidths,
       [](int64_t n) {
         return std::vector<Sizes>{{4, n}, {n}};
       },
       [](const Tensors& x) {
         const auto [y, reciprocal] = mesh_ops::rms_norm(x[0], x[1], 1e-5);
         return Tensors{y, reciprocal};
       }},
      {"rows.rms_norm_backward", kRowWidths,
       [](int64_t n) {
         return std::vector<Sizes>{{3, 5, n}, {3, 5, n}, {n}};
       },
       [](const Tensors& x) {
         const auto reciprocal = std::get<1>(mesh_ops::rms_norm(x[1], x[2], 1e-5));
         return Tensors{mesh_ops::rms_norm_input_gradient(x[0], x[1], reciprocal, x[2]),
                        mesh_ops::rms_norm_weight_gradient(x[0], x[1], reciprocal)};
       }},
      {"rows.rms_norm_weight",
       {1, 31, 65, 300},
       [](int64_t n) {
         return std::vector<Sizes>{{2, n, 9}, {2, n, 9}, {2, n}};
       },
       [](const Tensors& x) { return Tensors{mesh_ops::rms_norm_weight_gradient(x[0], x[1], x[2])}; }},
      {"rows.layer_norm", kRowWidths,
       [](int64_t n) {
         return std::vector<Sizes>{{4, n}, {n}, {n}};
       },
       [](const Tensors& x) { return Tensors{at::layer_norm(x[0], {x[0].size(1)}, x[1], x[2], 1e-5)}; }},
      {"rows.softmax", kRowWidths, one_matrix, [](const Tensors& x) { return Tensors{at::_softmax(x[0], 1, false)}; }},
      {"rows.softmax_of_columns", kRowWidths,
       [](int64_t n) {
         return std::vector<Sizes>{{n, 3}};
       },
       [](const Tensors& x) {
         return Tensors{at::_softmax(x[0], 0, false), at::_log_softmax(x[0], 0, false)};
       }},
      {"rows.log_softmax", kRowWidths, one_matrix,
       [](const Tensors& x) { return Tensors{at::_log_softmax(x[0], 1, false)}; }},
      {"rows.softmax_backward", kRowWidths, two_matrices,
       [](const Tensors& x) {
         const auto y = at::_softmax(x[1], 1, false);
         return Tensors{at::_softmax_backward_data(x[0], y, 1, x[1].scalar_type())};
       }},
      {"rows.log_softmax_backward", kRowWidths, two_matrices,
       [](const Tensors& x) {
         const auto y = at::_log_softmax(x[1], 1, false);
         return Tensors{at::_log_softmax_backward_data(x[0], y, 1, x[1].scalar_type())};
       }},
      {"rows.table_gradient",
       {1, 33, 300},
       [](int64_t n) {
         return std::vector<Sizes>{{n, 9}};
       },
       [](const Tensors& x) {
         return Tensors{at::embedding_dense_backward(x[0], integers_beside(x[0], 11), 11, -1, false)};
       }},
      {"losses.exponential_sum", kRowWidths, matrix_and_two_vectors,
       [](const Tensors& x) { return Tensors{mesh_ops::exponential_sum(x[0], x[1])}; }},
      {"losses.of_tokens", kRowWidths, one_matrix,
       [](const Tensors& x) {
         const auto losses = mesh_ops::token_losses(x[0], classes_beside(x[0], kIgnored), kIgnored);
         return Tensors{losses, mesh_ops::fixed_point_sum(losses)};
       }},
      {"losses.backward", kRowWidths, matrix_and_two_vectors,
       [](const Tensors& x) {
         return Tensors{mesh_ops::cross_entropy_backward(x[1], x[0], x[2], classes_beside(x[0], -1))};
       }},
  };
}

std::vector<GoldenOp> golden_gates() {
  const auto with_gradient = [](int64_t n) { return std::vector<Sizes>{{3, n}, {3, 2, n}}; };
  const auto turned = [](int64_t n) { return std::vector<Sizes>{{2, 4, n, 10}, {n, 5}, {n, 5}}; };
  return {
      {"gates.swiglu", kGateWidths, with_gradient, [](const Tensors& x) { return Tensors{mesh_ops::swiglu(x[1])}; }},
      {"gates.swiglu_backward", kGateWidths, with_gradient,
       [](const Tensors& x) { return Tensors{mesh_ops::swiglu_backward(x[0], x[1])}; }},
      {"gates.silu_backward", kGateWidths, two_matrices,
       [](const Tensors& x) { return Tensors{at::silu_backward(x[0], x[1])}; }},
      {"gates.gelu_backward", kGateWidths, two_matrices,
       [](const Tensors& x) { return Tensors{at::gelu_backward(x[0], x[1])}; }},
      {"gates.sigmoid_backward", kGateWidths, two_matrices,
       [](const Tensors& x) { return Tensors{at::sigmoid_backward(x[0], x[1])}; }},
      {"gates.tanh_backward", kGateWidths, two_matrices,
       [](const Tensors& x) { return Tensors{at::tanh_backward(x[0], x[1])}; }},
      {"rotary.forward", kGateWidths, turned,
       [](const Tensors& x) { return Tensors{mesh_ops::rotate_pairs(x[0], x[1], x[2])}; }},
      {"rotary.back", kGateWidths, turned,
       [](const Tensors& x) { return Tensors{mesh_ops::rotate_pairs(x[0], x[1], x[2], true)}; }},
  };
}

std::vector<GoldenOp> golden_functions() {
  std::vector<GoldenOp> ops;
  const auto add = [&](const char* name, Tensors (*run)(const Tensors&)) {
    ops.push_back({fmt::format("functions.{}", name), {500}, [](int64_t n) { return std::vector<Sizes>{{n}}; }, run});
  };
  add("cos", of_spread<at::cos>);
  add("erf", of_spread<at::erf>);
  add("exp", of_spread<at::exp>);
  add("gelu", of_spread<gelu>);
  add("log", of_spread<at::log>);
  add("log1p", of_spread<at::log1p>);
  add("sigmoid", of_spread<at::sigmoid>);
  add("silu", of_spread<at::silu>);
  add("sin", of_spread<at::sin>);
  add("sqrt", of_spread<at::sqrt>);
  add("tanh", of_spread<at::tanh>);
  return ops;
}

/// Ops that LibTorch rounds in several ways: each has one here.
std::vector<GoldenOp> golden_arithmetic() {
  return {
      {"arithmetic.add", kGateWidths, two_matrices,
       [](const Tensors& x) {
         return Tensors{at::add(x[0], x[1], 0.3), at::sub(x[0], x[1], 0.7)};
       }},
      {"arithmetic.multiply", kGateWidths, two_matrices,
       [](const Tensors& x) {
         return Tensors{at::mul(x[0], x[1]), at::div(x[0], x[1])};
       }},
      {"arithmetic.addcmul", kGateWidths, three_matrices,
       [](const Tensors& x) { return Tensors{at::addcmul(x[0], x[1], x[2], 0.3)}; }},
      {"arithmetic.addcdiv", kGateWidths, three_matrices,
       [](const Tensors& x) { return Tensors{at::addcdiv(x[0], x[1], x[2], 0.3)}; }},
      {"arithmetic.lerp", kGateWidths, two_matrices,
       [](const Tensors& x) {
         return Tensors{at::lerp(x[0], x[1], 0.3), at::lerp(x[0], x[1], 0.7)};
       }},
      {"arithmetic.rsub", kGateWidths, one_matrix, [](const Tensors& x) { return Tensors{at::rsub(x[0], 1.1, 0.3)}; }},
      {"arithmetic.powers", kGateWidths, one_matrix,
       [](const Tensors& x) {
         return Tensors{at::pow(x[0], -2), at::pow(x[0], 2), at::pow(x[0], 3)};
       }},
      {"arithmetic.reciprocals", kGateWidths, one_matrix,
       [](const Tensors& x) {
         return Tensors{at::reciprocal(x[0]), at::rsqrt(at::mul(x[0], x[0]))};
       }},
  };
}

std::vector<GoldenOp> golden_optimizer() {
  return {
      {"optimizer.adamw", kGateWidths,
       [](int64_t n) {
         return std::vector<Sizes>{{3, n}, {3, n}, {3, n}, {3, n}};
       },
       [](const Tensors& x) {
         const auto square = at::mul(x[3], x[3]);
         mesh_ops::adamw(x[0], x[1], x[2], square, {1e-2, 0.9, 0.95, 1e-8, 0.1, 0.19, 0.0975, 0.5});
         return Tensors{x[0], x[2], square};
       },
       GoldenOp::kWide},
      {"norm.absolute_maximum", kRowWidths, one_matrix,
       [](const Tensors& x) { return Tensors{mesh_ops::absolute_maximum(x[0])}; }},
      {"norm.fixed_point_sum", kRowWidths, one_matrix,
       [](const Tensors& x) { return Tensors{mesh_ops::fixed_point_sum(x[0])}; }},
      {"norm.scaled_squares", kRowWidths, one_matrix,
       [](const Tensors& x) { return Tensors{mesh_ops::scaled_squares(x[0], 0x1p26)}; }},
  };
}

}  // namespace lockstep::testing
