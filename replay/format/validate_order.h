#pragma once
#include "replay/format/recording.h"

namespace lockstep::replay {

/// Part of validate(): tables are as a step that runs fills them. Names and scalars are there once; ops and collectives
/// begin in their order; collectives are numbered from 0 on each mesh, without gaps; an op's results are numbered from
/// 0 and stand together, where the op ended; each piece belongs to one collective, by tensor and then by sender, each
/// of which sends as many; the payload holds the pieces one after the other, without a byte more, or none. Throws
/// BadInput with what is wrong, and where.
///
/// REQUIRES: numbers point into their tables.
void validate_order(const StepRecording& recording);

}  // namespace lockstep::replay
