#pragma once
#include <ATen/core/Tensor.h>

/// What Ranger21 does to a gradient before its moments. A unit of a parameter of two or more dimensions is a row, all
/// that one index of the first dimension leaves; of fewer dimensions the whole parameter is one.
namespace lockstep::trainer {

/// The Euclidean norm of each unit: [rows, 1, ...], or a scalar.
at::Tensor unit_norms(const at::Tensor& x);

/// Adaptive gradient clipping (Brock et al., 2021, section 4): each unit of the gradient is at most 0.01 times as long
/// as max(the parameter's unit, 0.001).
at::Tensor clipped_by_units(const at::Tensor& gradient, const at::Tensor& parameter);

/// Gradient centralisation (Yong et al., 2020): without the mean of each row. A parameter of fewer dimensions stays.
at::Tensor centralised(const at::Tensor& gradient);

/// Divided by the standard deviation of all elements (n - 1 in its denominator) plus 1e-8; of two or fewer it stays.
at::Tensor normalised(const at::Tensor& gradient);

}  // namespace lockstep::trainer
