#pragma once
#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <optional>
#include <tuple>

/// Activations put together of ops with rows; arguments and results are LibTorch's, for its ops of these names.
namespace lockstep::composed {

/// In training the slope of each element below 0 is drawn; `noise` becomes what elements were multiplied with.
at::Tensor rrelu_with_noise(const at::Tensor& self, at::Tensor& noise, const at::Scalar& lower, const at::Scalar& upper,
                            bool training, std::optional<at::Generator> generator);
/// Writes no noise: what would be written is the second result.
std::tuple<at::Tensor, at::Tensor> rrelu_with_noise_functional(const at::Tensor& self, const at::Tensor& noise,
                                                               const at::Scalar& lower, const at::Scalar& upper,
                                                               bool training, std::optional<at::Generator> generator);
at::Tensor& rrelu_with_noise_in_place(at::Tensor& self, at::Tensor& noise, const at::Scalar& lower,
                                      const at::Scalar& upper, bool training, std::optional<at::Generator> generator);

}  // namespace lockstep::composed
