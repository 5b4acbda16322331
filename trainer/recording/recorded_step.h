#pragma once
#include <string_view>

#include "replay/format/recording.h"
#include "trainer/data/dataset.h"

namespace lockstep::trainer {

/// A recorded number. Throws FileError if there is none of this name.
double scalar_of(const replay::StepRecording& recording, std::string_view name);

/// The recorded global batch.
TokenBatch batch_of(const replay::StepRecording& recording);

}  // namespace lockstep::trainer
