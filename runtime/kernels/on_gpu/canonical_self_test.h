#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>

namespace lockstep::on_gpu {

/// For tests of the self-test: changes a GPU's result before it is compared.
using Tamper = std::function<void(const char* kernel, const at::Tensor& result)>;

struct SelfTestReport {
  int64_t comparisons = 0;
  double milliseconds = 0;
};

/// Whether the GPU in use has the CPU's bits in what canonical numerics computes there (docs/numerics.md): products,
/// sums, attention, rows, functions, AdamW, and LibTorch's kernels of single IEEE operations. Throws an Inconsistency
/// that names what differs. REQUIRES: require_gpu(), and self_test() of the CPU passed.
SelfTestReport canonical_self_test(const Tamper& tamper = {});

/// canonical_self_test(), once in a process.
const SelfTestReport& require_canonical_self_test();

}  // namespace lockstep::on_gpu
