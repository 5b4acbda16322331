#pragma once
#include <ATen/core/Tensor.h>

#include <optional>
#include <tuple>

/// What the kernels of our own ops take and give, one type of function for each op that has a kernel for CPUs
/// (cpu_kernels.h) and one composed of LibTorch's ops (composed.h): `signature::SwiGLU swiglu;` declares one. What each
/// computes is documented in runtime/own_ops/mesh_ops.h.
namespace lockstep::signature {

using at::Tensor;

using WeightGradient = Tensor(const Tensor& gradient, const Tensor& input);
using RMSNorm = std::tuple<Tensor, Tensor>(const Tensor& x, const Tensor& weight, double epsilon);
using RMSNormBackward = std::tuple<Tensor, Tensor>(const Tensor& gradient, const Tensor& x, const Tensor& reciprocal,
                                                   const Tensor& weight);
using ExponentialSum = Tensor(const Tensor& logits, const Tensor& shift);
using PickClass = Tensor(const Tensor& logits, const Tensor& target);
using CrossEntropyBackward = Tensor(const Tensor& gradient, const Tensor& logits, const Tensor& log_sum,
                                    const Tensor& target);
using Attention = std::tuple<Tensor, Tensor>(const Tensor& query, const Tensor& key, const Tensor& value, bool causal,
                                             double scale, int64_t first_row);
using AttentionBackward = std::tuple<Tensor, Tensor, Tensor>(const Tensor& gradient, const Tensor& query,
                                                             const Tensor& key, const Tensor& value,
                                                             const Tensor& output, const Tensor& log_sum, bool causal,
                                                             double scale, int64_t first_row);
using DocumentAttention = std::tuple<Tensor, Tensor>(const Tensor& query, const Tensor& key, const Tensor& value,
                                                     const Tensor& places, const std::optional<Tensor>& draws,
                                                     double dropout, double scale, int64_t first_row);
using DocumentAttentionBackward = std::tuple<Tensor, Tensor, Tensor>(const Tensor& gradient, const Tensor& query,
                                                                     const Tensor& key, const Tensor& value,
                                                                     const Tensor& output, const Tensor& log_sum,
                                                                     const Tensor& places,
                                                                     const std::optional<Tensor>& draws, double dropout,
                                                                     double scale, int64_t first_row);
using AttentionDraws = Tensor(const Tensor& query, int64_t keys, int64_t first_row);
using SumOfSquares = Tensor(const Tensor& x);
using AdamW = void(const Tensor& parameter, const Tensor& gradient, const Tensor& mean, const Tensor& square,
                   double learning_rate, double beta1, double beta2, double epsilon, double weight_decay,
                   double correction1, double correction2, double gradient_scale);
using SwiGLU = Tensor(const Tensor& both);
using SwiGLUBackward = Tensor(const Tensor& gradient, const Tensor& both);
using RotatePairs = Tensor(const Tensor& x, const Tensor& cosines, const Tensor& sines, bool back);
using Float8Linear = Tensor(const Tensor& x, const Tensor& x_maximum, const Tensor& weight,
                            const Tensor& weight_maximum, int64_t x_format, bool power_of_two, c10::ScalarType dtype);
using Float8WeightGradient = Tensor(const Tensor& gradient, const Tensor& gradient_maximum, const Tensor& input,
                                    const Tensor& input_maximum, int64_t gradient_format, bool power_of_two);

}  // namespace lockstep::signature
