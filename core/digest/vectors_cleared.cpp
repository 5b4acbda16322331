#include "core/digest/vectors_cleared.h"

#if defined(__x86_64__)
#  include <immintrin.h>
#endif

namespace lockstep {
#if defined(__x86_64__)
namespace {

__attribute__((target("avx"))) void clear_upper_halves() { _mm256_zeroupper(); }

}  // namespace

VectorsCleared::~VectorsCleared() {
  static const bool has_avx = __builtin_cpu_supports("avx") != 0;
  if (has_avx) clear_upper_halves();
}
#else
VectorsCleared::~VectorsCleared() = default;
#endif

}  // namespace lockstep
