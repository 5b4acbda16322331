#include "trainer/recording/recorded_step.h"

#include <bit>

#include "core/error.h"
#include "trainer/step/training_run.h"

namespace lockstep::trainer {
namespace {

void require_known(const replay::StepRecording& recording, const char* what, const std::vector<int32_t>& ids,
                   int64_t vocabulary, bool may_be_ignored) {
  for (size_t i = 0; i < ids.size(); ++i) {
    const bool is_known = (ids[i] >= 0 && ids[i] < vocabulary) || (may_be_ignored && ids[i] == kIgnoredLabel);
    if (is_known) continue;
    const auto length = static_cast<size_t>(recording.seq_len);
    fail<FileError>("the recording of step {} has the {} {} at [{}, {}]; the model knows 0 to {}", recording.step, what,
                    ids[i], i / length, i % length, vocabulary - 1);
  }
}

}  // namespace

double scalar_of(const replay::StepRecording& recording, std::string_view name) {
  for (const auto& scalar : recording.scalars)
    if (scalar.name == name) return std::bit_cast<double>(scalar.bits);
  fail<FileError>("the recording of step {} has no {}", recording.step, name);
}

TokenBatch batch_of(const replay::StepRecording& recording, int64_t vocabulary) {
  require_known(recording, "token", recording.tokens, vocabulary, /*may_be_ignored=*/false);
  require_known(recording, "label", recording.labels, vocabulary, /*may_be_ignored=*/true);
  return {recording.rows,
          recording.seq_len,
          {recording.tokens.begin(), recording.tokens.end()},
          {recording.labels.begin(), recording.labels.end()},
          recording.first_sample,
          {recording.positions.begin(), recording.positions.end()}};
}

void require_sample(const replay::StepRecording& recording, int64_t due) {
  if (recording.first_sample != due)
    fail<FileError>("step {} of rank {} starts with sample {}, the step before it ended at {}", recording.step,
                    recording.rank, recording.first_sample, due);
}

void require_payloads(const replay::StepRecording& recording) {
  for (const auto& piece : recording.pieces)
    if (piece.offset == replay::kNoPayload)
      fail<BadInput>(
          "step {} of rank {} was recorded without payloads (record.payload = \"none\"): it cannot be replayed",
          recording.step, recording.rank);
}

}  // namespace lockstep::trainer
