// Numbers of few bits: quantised and back, in one step or by way of their codes.
#include "core/elementary/low_precision.h"

#include <algorithm>

#include "core/error.h"
#include "runtime/kernels/on_gpu/on_gpu.h"
#include "runtime/kernels/tensors/canonical_products.h"
#include "runtime/kernels/tensors/cpu_kernels.h"
#include "runtime/own_ops/families.h"
#include "runtime/own_ops/mesh_ops.h"
#include "runtime/planning/canonical_local.h"

namespace lockstep {

using at::Tensor;

namespace own_ops {
namespace {

constexpr int64_t kBlock = 32;
constexpr auto kE4m3 = static_cast<int64_t>(elementary::NumberFormat::kE4m3);

int64_t format_of(const Call& call, int64_t count, const char* argument = "format") {
  const int64_t format = call.argument(argument).toInt();
  if (format < 0 || format >= count)
    fail<BadInput>("{}: format {} is none of 0 to {} (core/elementary/low_precision.h)", call.op, format, count - 1);
  return format;
}

void require_real(const Call& call, size_t operand) {
  if (!is_real(call.operand_dtypes[operand]))
    fail<BadInput>("{}: operand {} holds {}, expected float32, bfloat16 or float16", call.op, operand,
                   c10::toString(call.operand_dtypes[operand]));
}

/// Aligned at the right, each size is that of x or 1.
void require_scales_of(const Call& call) {
  const auto &x = call.operand_sizes[0], &maximum = call.operand_sizes[1];
  const bool fits = maximum.size() <= x.size() && std::equal(maximum.rbegin(), maximum.rend(), x.rbegin(),
                                                             [](int64_t m, int64_t n) { return m == n || m == 1; });
  if (!fits)
    fail<BadInput>("{}: maxima of sizes {} are none of a tensor of sizes {}", call.op,
                   c10::str(c10::IntArrayRef(maximum)), c10::str(c10::IntArrayRef(x)));
  require_real(call, 1);
}

std::vector<ResultShape> quantized_shape(const Call& call) {
  format_of(call, std::size(elementary::kGrids));
  require_real(call, 0);
  require_scales_of(call);
  return {{call.operand_sizes[0], {}, dtype_of_numbers(call.operand_dtypes[0])}};
}

std::vector<ResultShape> codes_shape(const Call& call) {
  format_of(call, 2);
  require_real(call, 0);
  require_scales_of(call);
  return {{call.operand_sizes[0], {}, c10::kByte}};
}

std::vector<ResultShape> numbers_shape(const Call& call) {
  format_of(call, 2);
  require_scales_of(call);
  require_codes(call, "codes");
  return {{call.operand_sizes[0], {}, dtype_of_numbers(call.operand_dtypes[1])}};
}

std::vector<ResultShape> blocks_shape(const Call& call) {
  format_of(call, std::size(elementary::kGrids));
  require_real(call, 0);
  if (call.dims(0) == 0) fail<BadInput>("{}: a tensor without dimensions has no blocks", call.op);
  call.dimension("dim", call.dims(0));
  return {{call.operand_sizes[0], {}, dtype_of_numbers(call.operand_dtypes[0])}};
}

/// Maxima of rows, whose last dimension is no dimension of x.
std::vector<ResultShape> float8_linear_shape(const Call& call) {
  format_of(call, 2, "x_format");
  for (const auto* codes : {"x", "weight"}) require_codes(call, codes);
  dtype_of_products(call, "x_maximum", "weight_maximum");
  for (const auto* maximum : {"x_maximum", "weight_maximum"})
    if (call.sizes_of(maximum).back() != 1)
      fail<BadInput>("{}: {} has {} elements for a row, expected 1", call.op, maximum, call.sizes_of(maximum).back());
  auto sizes = call.sizes_of("x");
  sizes.back() = call.sizes_of("weight")[0];
  return {{sizes, {}, call.argument("dtype").toScalarType()}};
}

/// Operands as float32 numbers, by the names that the schema gives.
Tensor numbers_of(const LocalCall& call, const torch::jit::Stack& stack, const char* codes, const char* maximum,
                  int64_t format) {
  return kernels::float8_numbers(call.tensor(stack, codes), call.tensor(stack, maximum), format,
                                 call.argument(stack, "power_of_two").toBool());
}

void canonical_linear(const LocalCall& call, torch::jit::Stack& stack) {
  const auto dtype = call.argument(stack, "dtype").toScalarType();
  const auto range = contracted_here(call, 0, call.plan.wanted[0]->dim_count() - 1);
  const auto x = numbers_of(call, stack, "x", "x_maximum", call.argument(stack, "x_format").toInt());
  auto sum = kernels::linear(x, numbers_of(call, stack, "weight", "weight_maximum", kE4m3), std::nullopt, range);
  stack = {range.stays_open() ? sum : sum.to(dtype)};
}

/// Maxima broadcast, which operands of our own ops do not elsewhere.
OpSharding by_element(const Call& call) {
  return parse_op_sharding("...->...", call.operand_sizes, call.result_sizes());
}

/// A mesh axis may cut between blocks.
OpSharding between_blocks(const Call& call) {
  OpShardingDims dims;
  const int blocked = call.dimension("dim", call.dims(0));
  for (int d = 0; d < call.dims(0); ++d) dims.push_back({d, d == blocked ? kBlock : 1});
  OpSharding sharding;
  sharding.operands = sharding.results = {dims};
  sharding.can_reduce = false;
  sharding.linearity = {Linearity::kNone};
  return sharding;
}

constexpr OwnOp kOps[] = {
    {.schema = "float8_codes(Tensor x, Tensor maximum, int format, bool power_of_two) -> Tensor",
     .on_cpu = kernel<kernels::float8_codes>,
     .on_gpu = kernel<kernels::float8_codes>,
     .rule = {"mesh::float8_codes", "low precision", "x, maxima -> x", "-", Rule::kPlain, by_element, codes_shape},
     .canonical = {.on_gpu = true}},
    {.schema = "float8_numbers(Tensor codes, Tensor maximum, int format, bool power_of_two) -> Tensor",
     .on_cpu = kernel<kernels::float8_numbers>,
     .on_gpu = kernel<kernels::float8_numbers>,
     .rule = {"mesh::float8_numbers", "low precision", "x, maxima -> x", "-", Rule::kPlain, by_element, numbers_shape},
     .canonical = {.on_gpu = true}},
    {.schema = "float8_linear(Tensor x, Tensor x_maximum, Tensor weight, Tensor weight_maximum, int x_format, "
               "bool power_of_two, ScalarType dtype) -> Tensor",
     .on_cpu = kernel<kernels::float8_linear>,
     .on_gpu = kernel<on_gpu::float8_linear>,
     .rule = {"mesh::float8_linear", "low precision", "...k,...A,nk,nB->...n", "-", Rule::kPlain, nullptr,
              float8_linear_shape},
     .canonical = {canonical_linear, Rule::kPlain, true}},
    {.schema = "quantize(Tensor x, Tensor maximum, int format, bool power_of_two) -> Tensor",
     .on_cpu = kernel<kernels::quantize>,
     .on_gpu = kernel<kernels::quantize>,
     .rule = {"mesh::quantize", "low precision", "x, maxima -> x", "-", Rule::kPlain, by_element, quantized_shape},
     .canonical = {.on_gpu = true}},
    {.schema = "quantize_blocks(Tensor x, int dim, int format) -> Tensor",
     .on_cpu = kernel<kernels::quantize_blocks>,
     .on_gpu = kernel<kernels::quantize_blocks>,
     .rule = {"mesh::quantize_blocks", "low precision", "...b... -> ...b..., b in blocks of 32", "-", Rule::kPlain,
              between_blocks, blocks_shape},
     .canonical = {.on_gpu = true}},
};

}  // namespace

OwnOpFamily low_precision() { return {kOps}; }

}  // namespace own_ops

namespace mesh_ops {

Tensor quantize(const Tensor& x, const Tensor& maximum, int64_t format, bool power_of_two) {
  static const auto op = own_ops::typed_op<kernels::quantize>("mesh::quantize");
  return op.call(x, maximum, format, power_of_two);
}

Tensor quantize_blocks(const Tensor& x, int64_t dim, int64_t format) {
  static const auto op = own_ops::typed_op<kernels::quantize_blocks>("mesh::quantize_blocks");
  return op.call(x, dim, format);
}

Tensor float8_codes(const Tensor& x, const Tensor& maximum, int64_t format, bool power_of_two) {
  static const auto op = own_ops::typed_op<kernels::float8_codes>("mesh::float8_codes");
  return op.call(x, maximum, format, power_of_two);
}

Tensor float8_numbers(const Tensor& codes, const Tensor& maximum, int64_t format, bool power_of_two) {
  static const auto op = own_ops::typed_op<kernels::float8_numbers>("mesh::float8_numbers");
  return op.call(codes, maximum, format, power_of_two);
}

Tensor float8_linear(const Tensor& x, const Tensor& x_maximum, const Tensor& weight, const Tensor& weight_maximum,
                     int64_t x_format, bool power_of_two, c10::ScalarType dtype) {
  static const auto op = own_ops::typed_op<kernels::float8_linear>("mesh::float8_linear");
  return op.call(x, x_maximum, weight, weight_maximum, x_format, power_of_two, dtype);
}

}  // namespace mesh_ops
}  // namespace lockstep
