#pragma once
#include "rng/distribution.h"

/// Limits of a floating dtype around a real number; values are exact as double.
namespace lockstep::rng {

/// The least value of `kind` that is >= x (infinity if there is none).
double least_from(ScalarKind kind, double x);

/// The greatest value of `kind` that is <= x (-infinity if there is none).
double greatest_up_to(ScalarKind kind, double x);

/// The greatest value of `kind` that is < x (-infinity if there is none).
double greatest_below(ScalarKind kind, double x);

}  // namespace lockstep::rng
