#pragma once
#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <utility>

/// The two families of errors.
///
/// Errors that a caller may handle derive from `Error` and carry the process's exit code; `main` prints `what()` after
/// the program's name and returns that code. Broken invariants are `InternalError`, thrown by LOCKSTEP_CHECK: a bug of
/// Lockstep itself. Library code never prints and never exits.
namespace lockstep {

enum class ExitCode : int {
  kFine = 0,
  kInternal = 1,      ///< a bug in Lockstep
  kBadInput = 2,      ///< one clear line: what, where, what was expected
  kInconsistent = 3,  ///< results differ, NaN or Inf included; a report was written
  kTransport = 4,     ///< a peer or the transport failed
  kFile = 5,          ///< a file could not be written, or is damaged
  kInterrupted = 6,   ///< stopped by a signal; state was saved
};

class Error : public std::runtime_error {
 public:
  Error(ExitCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  ExitCode code() const { return code_; }

 private:
  ExitCode code_;
};

/// One class per exit code, so that `catch` and `EXPECT_THROW` name the family.
template <ExitCode kCode>
class ErrorOf : public Error {
 public:
  explicit ErrorOf(const std::string& message) : Error(kCode, message) {}
};

using InternalError = ErrorOf<ExitCode::kInternal>;
using BadInput = ErrorOf<ExitCode::kBadInput>;
using Inconsistency = ErrorOf<ExitCode::kInconsistent>;
using TransportError = ErrorOf<ExitCode::kTransport>;
using FileError = ErrorOf<ExitCode::kFile>;
using Interrupted = ErrorOf<ExitCode::kInterrupted>;

/// Throws `E` with a formatted message: fail<BadInput>("mesh {} needs {} ranks", mesh, n).
template <class E, class... Args>
[[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) {
  throw E(fmt::format(format, std::forward<Args>(args)...));
}

namespace detail {
[[noreturn]] void check_failed(const char* file, int line, const char* expression, const std::string& message);
inline std::string message() { return {}; }
template <class... Args>
std::string message(fmt::format_string<Args...> format, Args&&... args) {
  return fmt::format(format, std::forward<Args>(args)...);
}
}  // namespace detail
}  // namespace lockstep

/// An invariant of Lockstep's own: throws InternalError with place, expression and an optional formatted message.
#define LOCKSTEP_CHECK(condition, ...)                                                                            \
  do {                                                                                                            \
    if (!(condition)) [[unlikely]]                                                                                \
      ::lockstep::detail::check_failed(__FILE__, __LINE__, #condition, ::lockstep::detail::message(__VA_ARGS__)); \
  } while (false)

/// Equality of two printable values; the message holds both.
#define LOCKSTEP_CHECK_EQ(left, right, ...)                                                                     \
  do {                                                                                                          \
    const auto& lockstep_left = (left);                                                                         \
    const auto& lockstep_right = (right);                                                                       \
    if (!(lockstep_left == lockstep_right)) [[unlikely]]                                                        \
      ::lockstep::detail::check_failed(                                                                         \
          __FILE__, __LINE__, #left " == " #right,                                                              \
          fmt::format("{} != {} {}", lockstep_left, lockstep_right, ::lockstep::detail::message(__VA_ARGS__))); \
  } while (false)
