#pragma once
#include "core/elementary/instruction_set.h"
#include "core/elementary/portable.h"

/// Compiling one loop for every instruction set.
namespace lockstep::kernels {
namespace detail {

template <class Loop, class... Arguments>
void run_baseline(Arguments... arguments) {
  Loop::run(arguments...);
}

#if defined(__x86_64__)
template <class Loop, class... Arguments>
LOCKSTEP_TARGET_AVX2 void run_avx2(Arguments... arguments) {
  Loop::run(arguments...);
}
template <class Loop, class... Arguments>
LOCKSTEP_TARGET_AVX512 void run_avx512(Arguments... arguments) {
  Loop::run(arguments...);
}
#endif

}  // namespace detail

/// Loop::run(arguments...), compiled for an instruction set of this machine. REQUIRES: run is LOCKSTEP_PORTABLE and its
/// order of additions is written out (lanes), so that all sets give the same bits.
template <class Loop, class... Arguments>
void on_instruction_set(InstructionSet set, Arguments... arguments) {
  switch (set) {
#if defined(__x86_64__)
    case InstructionSet::kAvx512:
      return detail::run_avx512<Loop>(arguments...);
    case InstructionSet::kAvx2:
      return detail::run_avx2<Loop>(arguments...);
#endif
    default:
      return detail::run_baseline<Loop>(arguments...);
  }
}

/// The same for the fastest one.
template <class Loop, class... Arguments>
void on_best_instruction_set(Arguments... arguments) {
  on_instruction_set<Loop>(best_instruction_set(), arguments...);
}

}  // namespace lockstep::kernels
