#pragma once

namespace lockstep {

/// Whether the address or thread sanitizer watches this program: it is several times slower then, needs more memory,
/// and calls of its own. What is promised of time, memory and system calls is promised of a program that runs alone.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#elif defined(__has_feature)
#  if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
inline constexpr bool kSanitized = true;
#  else
inline constexpr bool kSanitized = false;
#  endif
#else
inline constexpr bool kSanitized = false;
#endif

}  // namespace lockstep
