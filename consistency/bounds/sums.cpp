// Sums, and products of matrices: n summands, in any order, are n roundings of the sum of magnitudes.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include <limits>

#include "consistency/bounds/families.h"
#include "runtime/own_ops/mesh_ops.h"
#include "runtime/planning/plan.h"

namespace lockstep::bounds {
namespace {

at::Tensor as_rows(const at::Tensor& tensor) { return tensor.dim() == 1 ? tensor.unsqueeze(0) : tensor.flatten(0, -2); }

at::Tensor raw(const ExactCall& call, const char* name) { return call.argument(name).toTensor(); }

/// A sum of products is at most the product of the lengths (Cauchy and Schwarz), and each of the two results is wrong
/// by its roundings; the lengths are, too.
at::Tensor by_lengths(const ExactCall& call, const at::Tensor& rows, const at::Tensor& columns, int64_t summands) {
  const auto roundings = static_cast<double>(summands) + 3 + call.more_roundings;
  return rows * columns * (2.2 * roundings * call.unit) + std::numeric_limits<float>::min();
}

at::Tensor rough_product(const ExactCall& call, const char* left, const char* right) {
  const auto a = raw(call, left), b = raw(call, right);
  if (a.dim() < 2 || b.dim() < 2) return {};
  return by_lengths(call, a.norm(2, -1, /*keepdim=*/true), b.norm(2, -2, /*keepdim=*/true), a.size(-1));
}
at::Tensor rough_matrix_product(const ExactCall& call) { return rough_product(call, "self", "mat2"); }
at::Tensor rough_general_product(const ExactCall& call) { return rough_product(call, "self", "other"); }

at::Tensor rough_with_weight(const ExactCall& call) {
  if (call.argument("bias").isTensor()) return {};
  const auto input = raw(call, "input");
  return by_lengths(call, input.norm(2, -1, /*keepdim=*/true), raw(call, "weight").norm(2, -1), input.size(-1));
}

at::Tensor rough_weight_gradient(const ExactCall& call) {
  const auto gradient = raw(call, "gradient"), input = raw(call, "input");
  const auto rows = as_rows(gradient);
  return by_lengths(call, rows.norm(2, 0).unsqueeze(-1), as_rows(input).norm(2, 0), rows.size(0));
}

at::Tensor matrix_product(const ExactCall& call, const char* left, const char* right) {
  const auto length = static_cast<double>(call.tensor(left).size(-1));
  return call.rounded(length + 2, at::matmul(call.magnitude(left), call.magnitude(right)));
}
at::Tensor product(const ExactCall& call) { return matrix_product(call, "self", "mat2"); }
at::Tensor general_product(const ExactCall& call) { return matrix_product(call, "self", "other"); }

at::Tensor with_weight(const ExactCall& call) {
  auto sum = at::matmul(call.magnitude("input"), call.magnitude("weight").t());
  if (call.argument("bias").isTensor()) sum = sum + call.magnitude("bias");
  return call.rounded(static_cast<double>(call.tensor("input").size(-1)) + 3, sum) + call.stored(1, sum);
}

at::Tensor added_to(const ExactCall& call) {
  const auto sum = at::matmul(call.magnitude("mat1"), call.magnitude("mat2")) * std::abs(call.number("alpha"));
  const auto all = sum + call.magnitude("self") * std::abs(call.number("beta"));
  return call.rounded(static_cast<double>(call.tensor("mat1").size(-1)) + 6, all) + call.stored(4, all);
}

at::Tensor weight_gradient(const ExactCall& call) {
  const auto gradient = call.magnitude("gradient"), input = call.magnitude("input");
  const auto rows = as_rows(gradient);
  return call.rounded(static_cast<double>(rows.size(0)) + 2, at::matmul(rows.t(), as_rows(input)));
}

/// What codes stand for, as magnitudes.
at::Tensor code_magnitudes(const ExactCall& call, const char* codes, const char* maximum, int64_t format) {
  return mesh_ops::float8_numbers(raw(call, codes), call.magnitude(maximum), format,
                                  call.argument("power_of_two").toBool())
      .abs();
}

/// On a tensor core of NVIDIA's sm_90 an instruction adds 32 products of eight-bit numbers to what it was given: each
/// of the 33 cut to 14 bits, the first of the largest one's. Four of them, 128 products, go before a sum in float32
/// (DeepSeek-V3 Technical Report, 2024, section 3.3.2). None of the 33 is larger than the magnitude of the 128. Scales
/// are reciprocals there.
at::Tensor product_of_codes(const ExactCall& call, double summands, const at::Tensor& magnitude) {
  const auto allowed = call.rounded(summands + 6, magnitude);
  return call.by_tensor_cores ? allowed + magnitude * (4 * 33 * 0x1p-13) : allowed;
}

at::Tensor float8_linear(const ExactCall& call) {
  const auto x = code_magnitudes(call, "x", "x_maximum", call.argument("x_format").toInt());
  const auto weight = code_magnitudes(call, "weight", "weight_maximum", 0);
  return product_of_codes(call, static_cast<double>(weight.size(1)), at::matmul(x, weight.t()));
}

/// Each sample's part is rounded to bfloat16 there, too.
at::Tensor float8_weight_gradient(const ExactCall& call) {
  const auto gradient =
      as_rows(code_magnitudes(call, "gradient", "gradient_maximum", call.argument("gradient_format").toInt()));
  const auto input = as_rows(code_magnitudes(call, "input", "input_maximum", 0));
  const auto magnitude = at::matmul(gradient.t(), input);
  const auto allowed = product_of_codes(call, static_cast<double>(input.size(0)), magnitude);
  return call.by_tensor_cores ? allowed + lockstep::rounded(1, 0x1p-8, magnitude) : allowed;
}

/// How many elements one element of the result is a sum of.
double summands(const ExactCall& call, const at::Tensor& result) {
  const auto all = static_cast<double>(call.tensor("self").numel());
  return all / std::max<double>(1, static_cast<double>(result.numel()));
}

at::Tensor sum_of_magnitudes(const ExactCall& call) {
  const auto self = call.magnitude("self");
  if (!has_argument(call.schema, "dim")) return self.sum();
  const auto& dim = call.argument("dim");
  const auto dims = dim.isNone() ? std::vector<int64_t>{} : dim.toIntVector();
  return self.sum(at::OptionalIntArrayRef(dims), call.argument("keepdim").toBool());
}

at::Tensor sum(const ExactCall& call) {
  const auto total = sum_of_magnitudes(call);
  return call.rounded(summands(call, total) + 1, total);
}
/// A sum, and a quotient.
at::Tensor mean(const ExactCall& call) {
  const auto total = sum_of_magnitudes(call);
  const double count = summands(call, total);
  return call.rounded(count + 3, total / count) + call.stored(1, total / count);
}

/// Squares and sum in double.
at::Tensor squares(const ExactCall& call) {
  const auto x = call.magnitude("x");
  return lockstep::rounded(2 * static_cast<double>(x.numel()) + 4, 0x1p-53, x.square().sum());
}

/// A row of the table is a sum over the tokens that are it. LibTorch adds 16-bit gradients in 16 bits.
at::Tensor table_gradient(const ExactCall& call) {
  const auto tokens = call.tensor("indices").flatten();
  const int64_t rows = call.argument("num_weights").toInt();
  const auto sum =
      at::embedding_dense_backward(call.magnitude("grad_output"), call.tensor("indices"), rows,
                                   call.argument("padding_idx").toInt(), call.argument("scale_grad_by_freq").toBool());
  const auto counts = at::bincount(tokens, {}, rows).to(c10::kDouble).unsqueeze(-1) + 3;
  return lockstep::rounded(counts, std::max(call.unit, call.stored_unit), sum);
}

constexpr Row kRows[] = {
    row<added_to>("addmm"),
    row<product, rough_matrix_product>("bmm"),
    row<table_gradient>("embedding_dense_backward"),
    row<with_weight, rough_with_weight>("linear"),
    row<general_product, rough_general_product>("matmul"),
    row<mean>("mean"),
    row<mean>("mean.dim"),
    row<product, rough_matrix_product>("mm"),
    row<sum>("sum"),
    row<sum>("sum.dim_IntList"),
    row<float8_linear>("mesh::float8_linear"),
    row<float8_weight_gradient>("mesh::float8_weight_gradient"),
    row<squares>("mesh::sum_of_squares"),
    row<weight_gradient, rough_weight_gradient>("mesh::weight_gradient"),
};

}  // namespace

std::span<const Row> sums() { return kRows; }

}  // namespace lockstep::bounds
