#pragma once
#include <string_view>

#include "replay/format/recording.h"
#include "trainer/data/dataset.h"

namespace lockstep::trainer {

/// A recorded number. Throws FileError if there is none of this name.
double scalar_of(const replay::StepRecording& recording, std::string_view name);

/// The recorded global batch. Throws FileError for a token or a label that a model of so large a vocabulary does not
/// know.
TokenBatch batch_of(const replay::StepRecording& recording, int64_t vocabulary);

/// Throws FileError where the step starts with another sample than `due`, which is what the step before it ended at.
void require_sample(const replay::StepRecording& recording, int64_t due);

/// Throws BadInput where the payloads were not kept.
void require_payloads(const replay::StepRecording& recording);

}  // namespace lockstep::trainer
