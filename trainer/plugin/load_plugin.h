#pragma once
#include <string>

namespace lockstep::trainer {

/// Loads a shared library with a LOCKSTEP_PLUGIN and lets it add what it has; it stays for the rest of the process.
/// Gives its file's name and digest: "libmine.so 0123456789abcdef0123456789abcdef", a part of what a run is.
///
/// BadInput, in one line, for a file that is missing or no plug-in, that was built for another version of Lockstep
/// (none of it runs), that lacks a symbol, or that brings a name which is there, or an error of its own.
std::string load_plugin(const std::string& path);

}  // namespace lockstep::trainer
