#pragma once
#include "consistency/blame.h"
#include "consistency/op_trace.h"

namespace lockstep {

/// Compares a run with a reference's trace while it goes on: each op's operands, numbers and results, and each move of
/// a tensor between two layouts with itself. Remembers the first that differs. Collectives of all ranks at every event,
/// also after that: other ranks may not have found one.
class BlameObserver final : public Observer {
 public:
  BlameObserver(const OpTrace& reference, double tolerance) : reference_(reference), tolerance_(tolerance) {}

  void before_op(const OpEvent& event) override;
  void after_op(const OpEvent& event, std::span<const c10::IValue> results) override;
  void after_move(const MoveEvent& event) override;

  const std::optional<Blame>& blame() const { return blame_; }
  /// What was compared, and whether everything was: to be said where nothing differs.
  std::string compared() const;

 private:
  void note(Blame blame);
  void compare_operands(const OpEvent& event, const TracedOp& expected);
  void compare_numbers(const OpEvent& event, const TracedOp& expected);

  const OpTrace& reference_;
  double tolerance_;
  int64_t position_ = 0, ops_ = 0, moves_ = 0;
  int64_t alone_ = 0;  ///< ops that the reference does not have
  std::string first_alone_;
  std::optional<Blame> blame_;
};

}  // namespace lockstep
