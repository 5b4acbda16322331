#pragma once
#include "fuzz/search/check.h"

namespace lockstep::fuzz {

/// Random programs: with gradients, and with views, writes and refusals of all kinds, under both numerics.
Checks program_checks();

}  // namespace lockstep::fuzz
