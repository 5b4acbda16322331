#pragma once
#include <map>
#include <set>
#include <string>

#include "consistency/blame.h"
#include "consistency/moved_value.h"
#include "consistency/old_values.h"
#include "consistency/op_trace.h"

namespace lockstep {

/// Compares a run with a reference's trace while it goes on: each op's operands, numbers and results, each move of a
/// tensor between two layouts with itself, and what is made without an op. Remembers the first that differs.
/// Collectives of all ranks at every event, also after that: other ranks may not have found one.
class BlameObserver final : public Observer {
 public:
  BlameObserver(const OpTrace& reference, double tolerance) : reference_(reference), tolerance_(tolerance) {}

  void before_op(const OpEvent& event) override;
  void after_op(const OpEvent& event, std::span<const c10::IValue> results) override;
  void after_move(const MoveEvent& event) override;
  void after_value(const ValueEvent& event) override;

  const std::optional<Blame>& blame() const { return blame_; }
  /// If that is a move: what moved.
  const std::optional<MovedValue>& moved() const { return moved_; }
  /// What was compared, and what could not be.
  std::string compared() const;
  /// Kind "step", after a run in which nothing differed: says whether all was compared, of the run and of the
  /// reference.
  Blame blame_of_none() const;

 private:
  void note(Blame blame);
  /// One that the reference does not have.
  void note_alone(const std::string& id);
  void compare_operand(const OpEvent& event, const Operand& operand, const TracedOp& expected);
  void compare_numbers(const OpEvent& event, const TracedOp& expected);
  void compare_tensor(const ValueEvent& event, const at::Tensor& expected);
  bool compared_all() const;
  std::string missing_text() const;

  const OpTrace& reference_;
  double tolerance_;
  int64_t position_ = 0, ops_ = 0, moves_ = 0, values_ = 0;
  int64_t alone_ = 0;    ///< ops and values that the reference does not have
  int64_t pending_ = 0;  ///< operands and results that could not be read, or not on one device
  std::string first_alone_;
  std::set<std::string> seen_;                           ///< ids of ops and values
  std::map<std::string, std::vector<Operand>> awaited_;  ///< of ops that have begun, by id: compared when they end
  OldValues old_;
  std::optional<Blame> blame_;
  std::optional<MovedValue> moved_;
};

}  // namespace lockstep
