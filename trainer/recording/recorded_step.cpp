#include "trainer/recording/recorded_step.h"

#include <bit>

#include "core/error.h"

namespace lockstep::trainer {

double scalar_of(const replay::StepRecording& recording, std::string_view name) {
  for (const auto& scalar : recording.scalars)
    if (scalar.name == name) return std::bit_cast<double>(scalar.bits);
  fail<FileError>("the recording of step {} has no {}", recording.step, name);
}

TokenBatch batch_of(const replay::StepRecording& recording) {
  return {recording.rows,
          recording.seq_len,
          {recording.tokens.begin(), recording.tokens.end()},
          {recording.labels.begin(), recording.labels.end()},
          recording.first_sample};
}

}  // namespace lockstep::trainer
