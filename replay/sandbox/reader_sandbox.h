#pragma once
#include "replay/sandbox/reader_process.h"

namespace lockstep::replay {

/// Gives up, in a forked child and for good, all but memory and writing to `pipe`; what ReaderProcess promises. Throws
/// FileError if the system has no such thing.
void enter_sandbox(const ReaderLimits& limits, int pipe);

}  // namespace lockstep::replay
