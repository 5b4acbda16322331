#pragma once
#include <string_view>
#include <vector>

/// Vector instruction sets that kernels are compiled for. All give the same bits; they differ in speed.
namespace lockstep {

enum class InstructionSet { kBaseline, kAvx2, kAvx512 };

/// Those that this machine can run, slowest first; LOCKSTEP_INSTRUCTION_SET=baseline|avx2|avx512 limits them.
const std::vector<InstructionSet>& available_instruction_sets();

/// The fastest one available.
InstructionSet best_instruction_set();

std::string_view name_of(InstructionSet set);

}  // namespace lockstep

/// Before a function: compile it for one instruction set. LOCKSTEP_PORTABLE functions called in it follow.
#define LOCKSTEP_TARGET_BASELINE
#if defined(__x86_64__)
#  define LOCKSTEP_TARGET_AVX2 __attribute__((target("avx2,fma")))
#  if defined(__clang__)
#    define LOCKSTEP_TARGET_AVX512 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")))
#  else
#    define LOCKSTEP_TARGET_AVX512 \
      __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,prefer-vector-width=512")))
#  endif
#else
#  define LOCKSTEP_TARGET_AVX2
#  define LOCKSTEP_TARGET_AVX512
#endif
