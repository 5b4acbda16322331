#include "tools/lockstep/console.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <system_error>

namespace lockstep::tool {
namespace {

bool out_is_mute = false;
int out_error = 0;  ///< of the first write to stdout that failed

void remember(bool failed) {
  if (failed && out_error == 0) out_error = errno;
}

}  // namespace

void write_out(std::string_view text) {
  if (out_error == 0 && !out_is_mute) remember(std::fwrite(text.data(), 1, text.size(), stdout) != text.size());
}

void write_err(std::string_view text) { std::fwrite(text.data(), 1, text.size(), stderr); }

void mute_out() { out_is_mute = true; }

void flush_out() {
  if (out_error == 0) remember(std::fflush(stdout) != 0);
}

bool out_has_ended() { return out_error != 0; }

std::string unwritten_results() {
  flush_out();
  if (out_error == 0 || out_error == EPIPE) return {};
  return fmt::format("standard output cannot be written: {}. The results above are not complete.",
                     std::generic_category().message(out_error));
}

void occupy_standard_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (::fcntl(stream, F_GETFD) < 0 && errno == EBADF) ::open("/dev/null", O_RDONLY);  // the lowest number: this one
}

}  // namespace lockstep::tool
