#pragma once
#include <array>
#include <cstdint>
#include <vector>

#include "trainer/pipeline/schedule.h"

namespace lockstep::pipeline {

/// What the actions of a schedule wait for, besides what stands before them on their rank. With s for the stage, of one
/// microbatch:
///
///   F of s       F of s - 1
///   B or I of s  F of s, and B or I of s + 1
///   W of s       I of s
class Needs {
 public:
  /// REQUIRES: check_actions(schedule). Keeps a reference.
  explicit Needs(const Schedule& schedule);

  /// Places of what has to end before this action can begin. For the first of two that begin together that is
  /// what both need.
  std::vector<Place> of(const Place& place) const;

 private:
  enum Part { kForwardPart, kInputPart, kWeightPart, kParts };
  const Place& find(Part part, int64_t stage, int64_t microbatch) const;
  void add_own(const Place& place, std::vector<Place>& needs) const;
  static Part part_of(ActionKind kind);

  const Schedule& schedule_;
  std::vector<std::array<Place, kParts>> places_;  // by stage and microbatch
};

}  // namespace lockstep::pipeline
