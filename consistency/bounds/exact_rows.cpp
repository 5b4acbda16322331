// Rows that decide, move and pick: what one device gives, bit by bit.
#include "consistency/bounds/families.h"

namespace lockstep::bounds {
namespace {

// clang-format off
constexpr std::string_view kExact[] = {
    "__lshift__.Scalar", "__lshift__.Tensor", "__rshift__.Scalar", "__rshift__.Tensor", "_conj", "_conj_physical",
    "_neg_view", "_upsample_nearest_exact1d", "_upsample_nearest_exact2d", "_upsample_nearest_exact3d",
    "adaptive_max_pool2d", "adaptive_max_pool3d", "all", "all.dim", "all.dims", "amin", "aminmax", "any", "any.dim",
    "any.dims", "argmax", "argmin", "bernoulli.Tensor", "bernoulli.p", "bitwise_left_shift.Tensor",
    "bitwise_right_shift.Tensor", "bitwise_xor.Tensor", "bucketize.Tensor", "cauchy", "ceil", "clamp.Tensor",
    "clamp_max", "clamp_max.Tensor", "clamp_min.Tensor", "complex", "constant_pad_nd", "copysign.Tensor",
    "count_nonzero", "count_nonzero.dim_IntList", "cummax", "cummin", "diagonal_scatter", "exponential",
    "fill.Tensor", "flip", "floor", "fmax", "fmin", "frac", "frexp.Tensor", "gather", "gcd", "geometric",
    "hardshrink", "hardshrink_backward", "hardtanh", "hardtanh_backward", "heaviside", "index.Tensor", "index_copy",
    "index_fill.int_Scalar", "index_fill.int_Tensor", "index_select", "isin.Tensor_Scalar", "isin.Tensor_Tensor",
    "isneginf", "isposinf", "kthvalue", "lcm", "log_normal", "logical_xor", "masked_fill.Tensor", "masked_scatter",
    "max", "max.dim", "max_pool2d_with_indices", "median", "median.dim", "min", "min.dim", "mode", "multinomial",
    "nan_to_num", "nanmedian", "nanmedian.dim", "nextafter", "normal.Tensor_Tensor", "normal.Tensor_float",
    "normal.float_Tensor", "normal_functional", "random", "random.from", "random.to", "reflection_pad1d",
    "reflection_pad3d", "replication_pad1d", "replication_pad2d", "replication_pad3d", "roll", "round",
    "scatter.src", "scatter.value", "select_scatter", "signbit", "slice_scatter", "softshrink_backward", "sort",
    "sort.stable", "take", "threshold", "topk", "tril", "triu", "trunc", "upsample_nearest1d", "upsample_nearest2d",
    "upsample_nearest3d", "mesh::attention_draws", "mesh::float8_codes", "mesh::float8_numbers", "mesh::quantize", "mesh::quantize_blocks",
};
// clang-format on

}  // namespace

std::span<const std::string_view> exact_rows() { return kExact; }

}  // namespace lockstep::bounds
