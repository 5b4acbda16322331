#pragma once
#include <ATen/core/dispatch/Dispatcher.h>

#include <type_traits>

#include "core/error.h"
#include "runtime/own_ops/own_op.h"
#include "runtime/own_ops/own_ops.h"

/// The families of our own ops, one function per file of this folder, and what these files have in common.
namespace lockstep::own_ops {

OwnOpFamily adamw();
OwnOpFamily attention();
OwnOpFamily attention_blocks();
OwnOpFamily attention_draws();
OwnOpFamily document_attention();
OwnOpFamily experts();
OwnOpFamily gate();
OwnOpFamily hadamard();
OwnOpFamily loss();
OwnOpFamily low_precision();
OwnOpFamily norm();
OwnOpFamily rotary();
OwnOpFamily sums();
OwnOpFamily weight_gradient();

/// The op of that name ("mesh::swiglu") as the dispatcher calls it, for the op's entry point (mesh_ops.h); it takes and
/// gives what kKernel does.
template <auto* kKernel>
auto typed_op(const char* name) {
  define_own_ops();
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, "").typed<std::remove_pointer_t<decltype(kKernel)>>();
}

/// Whether our own ops compute with it: float8 is stored only.
inline bool is_real(c10::ScalarType dtype) { return c10::isFloatingType(dtype) && !c10::isFloat8Type(dtype); }

/// Of what numbers of few bits stand for under maxima of that dtype, and of what is quantised.
inline c10::ScalarType dtype_of_numbers(c10::ScalarType dtype) {
  return dtype == c10::kDouble ? c10::kDouble : c10::kFloat;
}

/// The dtype in which codes are multiplied. Throws BadInput where it is not that of both factors, or a maximum is none.
inline c10::ScalarType dtype_of_products(const Call& call, std::string_view left_maximum,
                                         std::string_view right_maximum) {
  for (const auto name : {left_maximum, right_maximum})
    if (!is_real(call.dtype_of(name)))
      fail<BadInput>("{}: {} holds {}, expected float32, bfloat16 or float16", call.op, name,
                     c10::toString(call.dtype_of(name)));
  const auto left = dtype_of_numbers(call.dtype_of(left_maximum));
  if (left == dtype_of_numbers(call.dtype_of(right_maximum))) return left;
  fail<BadInput>("{}: {} is {} and {} {}: numbers of both have to be of one dtype", call.op, left_maximum,
                 c10::toString(call.dtype_of(left_maximum)), right_maximum,
                 c10::toString(call.dtype_of(right_maximum)));
}

/// Throws BadInput where an operand holds no codes.
inline void require_codes(const Call& call, std::string_view operand) {
  if (call.dtype_of(operand) != c10::kByte)
    fail<BadInput>("{}: codes are uint8, not {}", call.op, c10::toString(call.dtype_of(operand)));
}

/// Shapes of results that are those of operand 1.
inline std::vector<ResultShape> like_second(const Call& call) {
  return {{call.operand_sizes[1], {}, call.operand_dtypes[1]}};
}

/// Values whose leading dimensions are those of operand 0 without the last.
inline std::vector<ResultShape> per_row(const Call& call) {
  auto sizes = call.operand_sizes[0];
  sizes.pop_back();
  return {{sizes, {}, call.operand_dtypes[0]}};
}

/// [batch, heads, length, ...] with memory [batch, length, heads, ...], so that heads merge without a copy.
inline ResultShape heads_inside(std::vector<int64_t> sizes, c10::ScalarType dtype) {
  const int64_t inner = sizes.size() > 3 ? sizes[3] : 1;
  std::vector<int64_t> strides{sizes[1] * sizes[2] * inner, inner, sizes[1] * inner};
  if (sizes.size() > 3) strides.push_back(1);
  return {std::move(sizes), std::move(strides), dtype};
}

}  // namespace lockstep::own_ops
