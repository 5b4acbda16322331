#pragma once
#include <ATen/core/Tensor.h>

#include <array>
#include <optional>
#include <tuple>

/// Norms put together of ops with rows; arguments and results are LibTorch's, for its ops of these names.
namespace lockstep::composed {

using Three = std::tuple<at::Tensor, at::Tensor, at::Tensor>;
using Perhaps = std::optional<at::Tensor>;

/// Statistics over the whole batch. BadInput in training under canonical numerics: they would depend on how many
/// microbatches there are.
Three batch_norm(const at::Tensor& input, const Perhaps& weight, const Perhaps& bias, const Perhaps& running_mean,
                 const Perhaps& running_var, bool training, double momentum, double eps);
Three batch_norm_backward(const at::Tensor& gradient, const at::Tensor& input, const Perhaps& weight,
                          const Perhaps& running_mean, const Perhaps& running_var, const Perhaps& save_mean,
                          const Perhaps& save_invstd, bool training, double eps, std::array<bool, 3> wanted);
Three group_norm(const at::Tensor& input, const Perhaps& weight, const Perhaps& bias, int64_t batch, int64_t channels,
                 int64_t places, int64_t groups, double eps);
Three group_norm_backward(const at::Tensor& gradient, const at::Tensor& input, const at::Tensor& mean,
                          const at::Tensor& rstd, const Perhaps& weight, int64_t batch, int64_t channels,
                          int64_t places, int64_t groups, std::array<bool, 3> wanted);
/// `shape`: of the last dimensions, which were normalized.
Three layer_norm_backward(const at::Tensor& gradient, const at::Tensor& input, c10::SymIntArrayRef shape,
                          const at::Tensor& mean, const at::Tensor& rstd, const Perhaps& weight, const Perhaps& bias,
                          std::array<bool, 3> wanted);

/// Batch norm under LibTorch's newer names, whose running statistics are written by name.
Three batch_norm_legit(const at::Tensor& input, const Perhaps& weight, const Perhaps& bias, at::Tensor& running_mean,
                       at::Tensor& running_var, bool training, double momentum, double eps);
Three batch_norm_of_batch(const at::Tensor& input, const Perhaps& weight, const Perhaps& bias, bool training,
                          double momentum, double eps);
/// The last result is what LibTorch's GPU kernels keep for the backward: nothing here.
std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor> batch_norm_with_update(
    const at::Tensor& input, const Perhaps& weight, const Perhaps& bias, at::Tensor& running_mean,
    at::Tensor& running_var, double momentum, double eps);
std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor> batch_norm_no_update(
    const at::Tensor& input, const Perhaps& weight, const Perhaps& bias, const Perhaps& running_mean,
    const Perhaps& running_var, double momentum, double eps);
Three batch_norm_with_update_backward(const at::Tensor& gradient, const at::Tensor& input, const at::Tensor& weight,
                                      const Perhaps& running_mean, const Perhaps& running_var, const Perhaps& save_mean,
                                      const Perhaps& save_invstd, bool update, double eps, std::array<bool, 3> wanted,
                                      const at::Tensor& reserve);

}  // namespace lockstep::composed
