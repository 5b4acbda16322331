#pragma once
#include <map>
#include <string>
#include <vector>

#include "core/collective_kind.h"
#include "core/phase.h"
#include "replay/format/recording.h"

namespace lockstep::testing {

/// A recorded step, put together call by call.
class SampleStep {
 public:
  replay::StepRecording recording;

  explicit SampleStep(int rank = 0, int world = 1) {
    recording.names = {""};
    recording.rank = rank, recording.world = world, recording.step = 2;
  }

  /// An op with one result of so many bytes.
  SampleStep& op(const std::string& name, uint64_t begin, uint64_t end, Phase phase = Phase::kForward,
                 uint64_t bytes = 0, int32_t microbatch = 0) {
    const auto number = static_cast<uint32_t>(recording.ops.size());
    recording.ops.push_back({{static_cast<uint8_t>(phase), microbatch, 0, name_of(name), number}, begin, end});
    recording.results.push_back({number, 0, replay::ResultKind::kDigest, 0, bytes, {}});
    return *this;
  }

  /// A collective on the mesh tp=2 that delivers a piece of so many bytes.
  SampleStep& collective(CollectiveKind kind, const std::string& axis, uint64_t begin, uint64_t end, uint64_t bytes) {
    const auto first = static_cast<uint32_t>(recording.pieces.size());
    recording.collectives.push_back({.id = {1, 0, 0, name_of("redistribute"), 0},
                                     .number = recording.collectives.size(),
                                     .mesh = name_of("tp=2"),
                                     .axis = name_of(axis),
                                     .kind = static_cast<uint8_t>(kind),
                                     .first_piece = first,
                                     .pieces = 1,
                                     .begin = begin,
                                     .end = end});
    recording.pieces.push_back({.source = 1, .tensor = 0, .bytes = bytes, .offset = replay::kNoPayload, .digest = {}});
    return *this;
  }

 private:
  replay::Name name_of(const std::string& text) {
    for (size_t i = 0; i < recording.names.size(); ++i)
      if (recording.names[i] == text) return static_cast<replay::Name>(i);
    recording.names.push_back(text);
    return static_cast<replay::Name>(recording.names.size() - 1);
  }
};

}  // namespace lockstep::testing
