// Attention of 16-bit numbers by LibTorch's fused kernels (Dao, 2023, "FlashAttention-2"), which never hold the table
// of scores. Their causal mask ends at the last key for the last query row: keys behind that row's are left out.
#include <ATen/Context.h>
#include <ATen/Functions.h>

#include "runtime/kernels/cuda/cuda_kernels.h"
#include "runtime/kernels/on_gpu/on_gpu.h"
#include "runtime/kernels/tensors/composed.h"
#include "runtime/kernels/tensors/heads.h"

namespace lockstep::on_gpu {
namespace {

/// How many keys the query rows look at.
int64_t keys_in_sight(const Tensor& query, const Tensor& key, bool causal, int64_t first_row) {
  return causal ? first_row + query.size(2) : key.size(2);
}

bool is_fused(const Tensor& query, const Tensor& key, const Tensor& value, bool causal, int64_t first_row) {
  const auto dtype = query.scalar_type();
  const int64_t size = query.size(3);
  const bool is_narrow = dtype == c10::kBFloat16 || dtype == c10::kHalf;
  const bool is_served = size == value.size(3) && size % 8 == 0 && size <= 256;
  return cuda::has_kernels() && is_narrow && is_served && query.numel() > 0 && key.numel() > 0 &&
         keys_in_sight(query, key, causal, first_row) <= key.size(2);
}

/// The fused kernels read 16 bytes at once.
Tensor readable(const Tensor& tensor) {
  bool is_aligned = tensor.stride(3) == 1 && reinterpret_cast<uintptr_t>(tensor.const_data_ptr()) % 16 == 0;
  for (int64_t dim = 0; dim < 3; ++dim) is_aligned = is_aligned && tensor.stride(dim) % 8 == 0;
  return is_aligned ? tensor : tensor.clone(c10::MemoryFormat::Contiguous);
}

/// The gradient of all keys from that of those in sight.
Tensor of_all(const Tensor& gradient, int64_t keys) {
  const int64_t hidden = keys - gradient.size(2);
  return heads::inside(hidden == 0 ? gradient : at::constant_pad_nd(gradient, {0, 0, 0, hidden}));
}

/// LibTorch adds to a query's gradient in any order otherwise. It would also fill new memory, all of which is written.
class Repeatable {
 public:
  Repeatable() {
    at::globalContext().setDeterministicAlgorithms(true, false);
    at::globalContext().setDeterministicFillUninitializedMemory(false);
  }
  ~Repeatable() {
    at::globalContext().setDeterministicAlgorithms(before_, warns_);
    at::globalContext().setDeterministicFillUninitializedMemory(fills_);
  }
  Repeatable(const Repeatable&) = delete;
  Repeatable& operator=(const Repeatable&) = delete;

 private:
  bool before_ = at::globalContext().deterministicAlgorithms();
  bool warns_ = at::globalContext().deterministicAlgorithmsWarnOnly();
  bool fills_ = at::globalContext().deterministicFillUninitializedMemory();
};

}  // namespace

std::tuple<Tensor, Tensor> attention(const Tensor& query, const Tensor& key, const Tensor& value, bool causal,
                                     double scale, int64_t first_row) {
  if (!is_fused(query, key, value, causal, first_row))
    return composed::attention(query, key, value, causal, scale, first_row);
  const int64_t keys = keys_in_sight(query, key, causal, first_row);
  const auto result = at::_scaled_dot_product_flash_attention(readable(query), readable(key.narrow(2, 0, keys)),
                                                              readable(value.narrow(2, 0, keys)), /*dropout_p=*/0.0,
                                                              causal, /*return_debug_mask=*/false, scale);
  return {heads::inside(std::get<0>(result)), heads::inside(std::get<1>(result))};
}

std::tuple<Tensor, Tensor, Tensor> attention_backward(const Tensor& gradient, const Tensor& query, const Tensor& key,
                                                      const Tensor& value, const Tensor& output, const Tensor& log_sum,
                                                      bool causal, double scale, int64_t first_row) {
  if (!is_fused(query, key, value, causal, first_row))
    return composed::attention_backward(gradient, query, key, value, output, log_sum, causal, scale, first_row);
  const int64_t keys = keys_in_sight(query, key, causal, first_row);
  const auto unused = at::zeros({2}, query.options().dtype(c10::kLong));  // the state of a generator, for dropout
  const Repeatable repeatable;
  const auto [dq, dk, dv] = at::_scaled_dot_product_flash_attention_backward(
      readable(gradient), readable(query), readable(key.narrow(2, 0, keys)), readable(value.narrow(2, 0, keys)),
      readable(output), log_sum.contiguous(), /*cum_seq_q=*/{}, /*cum_seq_k=*/{}, query.size(2), keys,
      /*dropout_p=*/0.0, causal, unused, unused, scale);
  return {heads::inside(dq), of_all(dk, key.size(2)), of_all(dv, key.size(2))};
}

}  // namespace lockstep::on_gpu
