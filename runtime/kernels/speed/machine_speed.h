#pragma once
#include "runtime/kernels/products/product_loops.h"

/// What this machine reaches in what it is best at, measured and not looked up: what the speed of a run is a share of
/// (docs/metrics.md). Each is the mean over 50 ms, or over one time if that takes longer.
namespace lockstep::kernels {

/// Threads that are made for each call. `count` at least 1.
Workers thread_workers(int count);

/// Operations a second, two for each fma, of a large float32 product by the kernel that canonical numerics use
/// (product_loops.h).
double product_speed(const Workers& workers);

/// Bytes a second, those read and those written, of a copy that no cache holds (64 MiB).
double copy_speed(const Workers& workers);

}  // namespace lockstep::kernels
