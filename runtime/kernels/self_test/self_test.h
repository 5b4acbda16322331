#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>

#include "core/elementary/instruction_set.h"

namespace lockstep::kernels {

/// What is compared at a time: one kernel on one instruction set, its operands so many bytes past a cache line.
struct SelfTestCase {
  const char* kernel;
  InstructionSet set;
  int64_t offset;
};

/// For tests of the self-test: changes the bytes of a result before they are compared.
using Tamper = std::function<void(const SelfTestCase&, void* result, std::size_t bytes)>;

struct SelfTestReport {
  int64_t comparisons = 0;
  double milliseconds = 0;
};

/// Whether this machine computes what canonical numerics promises (docs/numerics.md): the floating-point environment,
/// the tree, and products, attention, ordered sums, table gradients, RMSNorm, SwiGLU, rotary embedding, cross-entropy
/// and AdamW on every available instruction set, at addresses that are no multiple of a vector, against their oracles
/// in all bits. Throws an Inconsistency that names
/// kernel, instruction set and element, or an InternalError where the environment is wrong.
SelfTestReport self_test(const Tamper& tamper = {});

/// self_test(), once in a process.
const SelfTestReport& require_self_test();

}  // namespace lockstep::kernels
