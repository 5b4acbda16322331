#pragma once
#include <string>

namespace lockstep {

/// What the linker stamped into this program (the GNU build id, in hexadecimal): equal for equal code. "unknown" if it
/// did not.
std::string build_id();

}  // namespace lockstep
