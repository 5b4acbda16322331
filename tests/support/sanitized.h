#pragma once

namespace lockstep::testing {

/// Whether sanitizers watch this program: it is several times slower then, and needs more memory. What is promised of
/// time and memory is promised of a program that runs alone.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

}  // namespace lockstep::testing
