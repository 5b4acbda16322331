#pragma once
#include <ATen/core/Tensor.h>

#include <vector>

#include "runtime/kernels/attention/attention_loops.h"
#include "runtime/kernels/tensors/canonical_attention.h"

/// Tensors as the kernels of canonical attention take them.
namespace lockstep::kernels {

inline c10::ScalarType wide_of(const at::Tensor& tensor) {
  return tensor.scalar_type() == c10::kDouble ? c10::kDouble : c10::kFloat;
}

template <class T>
HeadTensor<const T> read_heads(const at::Tensor& tensor) {
  return {static_cast<const T*>(tensor.const_data_ptr()), tensor.stride(0), tensor.stride(1), tensor.stride(2),
          tensor.dim() > 3 ? tensor.stride(3) : 1};
}
template <class T>
HeadTensor<T> write_heads(const at::Tensor& tensor) {
  return {tensor.mutable_data_ptr<T>(), tensor.stride(0), tensor.stride(1), tensor.stride(2), 1};
}

/// With what it points to.
struct ShapeOfRows {
  AttentionShape sizes;
  AttentionRows rows = {};
};

/// Throws BadInput where sizes or dtypes do not fit, or what rows bring along is none.
ShapeOfRows shape_of(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value, bool causal, double scale,
                     int64_t first_row, const AttentionRows& rows = {});

}  // namespace lockstep::kernels
