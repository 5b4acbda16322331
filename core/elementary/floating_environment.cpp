#include "core/elementary/floating_environment.h"

#include <cfenv>

#include "core/error.h"

#if defined(__x86_64__)
#  include <xmmintrin.h>
#endif

namespace lockstep {
namespace {

/// Whether half of the least normal number vanishes (flushed as a result, or read as zero afterwards).
bool loses_subnormals() {
  volatile float least = 0x1p-126f, half = 0.5f;
  volatile float subnormal = least * half;
  volatile float back = subnormal * 2.0f;
  return !(back > 0.0f);
}

}  // namespace

void check_floating_environment() {
  if (std::fegetround() != FE_TONEAREST) {
    fail<InternalError>("floating-point environment: rounding mode {} instead of to nearest", std::fegetround());
  }
#if defined(__x86_64__)
  const unsigned control = _mm_getcsr();
  constexpr unsigned kFlushToZero = 0x8000, kDenormalsAreZero = 0x0040, kRounding = 0x6000;
  if ((control & (kFlushToZero | kDenormalsAreZero | kRounding)) != 0) {
    fail<InternalError>("floating-point environment: MXCSR is {:#06x}:{}{}{}", control,
                        (control & kFlushToZero) != 0 ? " flush-to-zero" : "",
                        (control & kDenormalsAreZero) != 0 ? " denormals-are-zero" : "",
                        (control & kRounding) != 0 ? " not rounding to nearest" : "");
  }
#endif
  if (loses_subnormals()) fail<InternalError>("floating-point environment: subnormal numbers are lost");
}

}  // namespace lockstep
