#pragma once

namespace lockstep {

/// Results are promised bit by bit only under the default floating-point environment: rounding to nearest, subnormal
/// numbers neither flushed to zero nor read as zero. To be called when a program starts and on every thread it computes
/// on; InternalError naming what differs (a library built with -ffast-math sets it for the whole process).
void check_floating_environment();

}  // namespace lockstep
