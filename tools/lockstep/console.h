#pragma once
#include <fmt/format.h>

#include <string>
#include <string_view>

/// What commands say: results to stdout, progress and errors to stderr.
///
/// Neither throws when a text cannot be written. What goes to stderr is then lost; the exit code still tells. On stdout
/// the first failure is remembered, and the rest dropped, so that work whose reader has gone (`| head`, a full disk
/// behind `>`) is finished and saved first; unwritten_results() is asked at the end.
namespace lockstep::tool {

void write_out(std::string_view text);
void write_err(std::string_view text);

template <class... Args>
void print_out(fmt::format_string<Args...> format, Args&&... args) {
  write_out(fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void print_err(fmt::format_string<Args...> format, Args&&... args) {
  write_err(fmt::format(format, std::forward<Args>(args)...));
}

/// From now on nothing is written to stdout: of several processes that have one result, one tells it.
void mute_out();

/// Hands what was written to stdout to its reader now.
void flush_out();

/// Whether nothing more can be written to stdout: a command that only prints may stop.
bool out_has_ended();

/// Flushes stdout. An error for the user if results are lost; empty if none are, or if their reader closed a pipe and
/// so wants no more.
std::string unwritten_results();

/// For the start of main. Takes the places of standard streams that are closed (`>&-`): the next file to be opened
/// would become stdout, and get the text that is printed. Writing there fails, as it would without.
void occupy_standard_streams();

}  // namespace lockstep::tool
