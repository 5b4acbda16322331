#pragma once
#include "replay/format/recording.h"

namespace lockstep::replay {

/// Everything that a reader of a recording may rely on: numbers point into their tables, ranges into the payload, sizes
/// are those of their bytes, names have no zeros and fit, a complete step has no reason, phases, kinds and dtypes are
/// known, the next sample is the one behind the batch, the digest of the state is one, if it is there. A machine's keys
/// hold no '=' and, as its values, no newline; its numerics version is one, if it is there. Rows stand in the order in
/// which a step makes them (validate_order.h). Throws BadInput with what is wrong, and where.
void validate(const StepRecording& recording);

}  // namespace lockstep::replay
