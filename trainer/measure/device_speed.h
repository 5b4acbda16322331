#pragma once
#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

namespace lockstep::trainer {

/// Operations a second, two for each multiplication whose result is added, of LibTorch's product of two square matrices
/// of `dtype` on `device`: of the smallest of 512, 1,024, ... 8,192 rows that takes a millisecond or more, or the
/// largest; the mean over 50 ms, or over one time if that takes longer. Waits for the device.
double device_product_speed(const c10::Device& device, c10::ScalarType dtype);

}  // namespace lockstep::trainer
