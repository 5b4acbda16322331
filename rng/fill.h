#pragma once
#include <cstdint>

#include "core/elementary/instruction_set.h"
#include "rng/distribution.h"
#include "rng/philox.h"
#include "rng/subarray.h"

namespace lockstep::rng {

/// Draws the elements of `subarray` into `out`, which points to the element at the box's start.
///
/// An element's value is a pure function of (key, stream, global index, distribution, kind): any box equals the same
/// box cut from the whole tensor, on any instruction set and device. BadInput if the subarray is malformed, or `kind`
/// cannot hold the distribution (integers in fp32, a uniform range that holds no bf16 value ...).
void fill(void* out, ScalarKind kind, const Distribution& distribution, Key key, uint64_t stream,
          const Subarray& subarray);

/// The same with a given instruction set, for tests and benchmarks; it must be available on this machine.
void fill(void* out, ScalarKind kind, const Distribution& distribution, Key key, uint64_t stream,
          const Subarray& subarray, InstructionSet instruction_set);

}  // namespace lockstep::rng
