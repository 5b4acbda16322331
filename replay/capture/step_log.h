#pragma once
#include <chrono>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "replay/format/recording.h"
#include "runtime/context/observer.h"

namespace lockstep::replay {

/// Strings as numbers, in the order of their first use.
class NameTable {
 public:
  Name operator[](std::string_view text);
  const std::vector<std::string>& names() const { return names_; }

 private:
  std::map<std::string, Name, std::less<>> numbers_;
  std::vector<std::string> names_;
};

/// What a step ran and when, in the order of the program, without what came of it: what recordings and profiles have
/// in common.
class StepLog {
 public:
  /// Forgets everything but names; times count from now.
  void begin();

  /// The numbers of the op that begins, and of the one that ends: an op may run others.
  uint32_t begin_op(const OpId& id);
  uint32_t end_op();
  uint32_t running_op() const { return running_.back(); }
  /// Those that have not ended end now: a step may fail in the middle of them.
  void end_all();

  /// For each of the mesh's local ranks, from now to now, without pieces. Numbers are those of the step: those of the
  /// run are others after a resume, and where observers gather.
  std::vector<RecordedCollective> begin_collective(const CollectiveEvent& event);

  uint64_t now() const;  ///< nanoseconds since begin()
  Name name_of(std::string_view text) { return names_[text]; }
  const std::vector<std::string>& names() const { return names_.names(); }
  const std::vector<RecordedOp>& ops() const { return ops_; }

 private:
  using Clock = std::chrono::steady_clock;
  RecordedId recorded_id(const OpId& id);

  NameTable names_;
  std::map<Name, uint64_t> collectives_on_;  ///< of the step, by mesh
  std::vector<RecordedOp> ops_;
  std::vector<uint32_t> running_;
  Clock::time_point start_ = Clock::now();
};

}  // namespace lockstep::replay
