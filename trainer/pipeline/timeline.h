#pragma once
#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "trainer/pipeline/schedule.h"

/// When a schedule's actions happen, where each kind takes a time that is known. Times have whatever unit they are
/// given in.
namespace lockstep::pipeline {

struct Durations {
  /// By kind: F, B, I, W. A backward takes about two forwards, half of it for the gradients of weights.
  std::array<double, kActionKinds> of_kind{1, 2, 1, 1};
  /// From the end of an action until its result is on another rank. No rank computes it.
  double transfer = 0;
  double of(ActionKind kind) const { return of_kind[static_cast<size_t>(kind)]; }
};

/// "F=1,B=2,I=1,W=1,T=0", any of these in any order, what is not named as above; T is the transfer. BadInput, naming
/// `where`, for anything else, an F, B, I or W that is not from 0.001 to
/// 1000, and a T that is not from 0 to 1000.
Durations parse_durations(std::string_view text, std::string_view where);

struct Interval {
  double begin = 0, end = 0;
};

struct Timeline {
  std::vector<std::vector<Interval>> ranks;  ///< for each action of each rank

  double length() const;  ///< until the last rank has ended
  double busy(int64_t rank) const;
  double span(int64_t rank) const;  ///< from its first to the end of its last action

  /// Shares of a rank's time in which it waits: of the whole length, and between its first and its last action. The
  /// second is what is left where the next step begins as soon as a rank has ended this one.
  double bubble(int64_t rank) const { return 1 - busy(rank) / length(); }
  double gaps(int64_t rank) const { return 1 - busy(rank) / span(rank); }

  double bubble() const;  ///< the mean of all ranks
  double gaps() const;    ///< the largest of all ranks
};

/// Each action begins as soon as it can; the two of a pair one behind the other, when both can: what they gain from
/// each other is not known here. BadInput if no end can be reached. REQUIRES: check_actions(schedule).
Timeline simulate(const Schedule& schedule, const Durations& durations = {});

}  // namespace lockstep::pipeline
