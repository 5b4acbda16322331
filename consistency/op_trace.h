#pragma once
#include <map>
#include <string>

#include "consistency/traced_op.h"

namespace lockstep {

/// What a run made without an op.
struct TracedValue {
  at::Tensor tensor;  ///< whole; or not defined
  double number = 0;
};

/// Every op of one run by op id, with what it took and gave: to be compared with another run's. What is made without an
/// op, too.
class OpTrace final : public Observer {
 public:
  /// `tolerance`: of the comparison that it is for.
  explicit OpTrace(double tolerance) : tolerance_(tolerance) {}

  void before_op(const OpEvent& event) override;
  void after_op(const OpEvent& event, std::span<const c10::IValue> results) override;
  void after_value(const ValueEvent& event) override;

  /// By OpId::text(); null if there was no such op.
  const TracedOp* find(const std::string& id) const;
  const TracedValue* find_value(const std::string& id) const;
  size_t count() const { return ops_.size(); }
  const std::map<std::string, TracedOp>& ops() const { return ops_; }
  const std::map<std::string, TracedValue>& values() const { return values_; }

 private:
  TracedOperand traced(const Operand& operand) const;

  double tolerance_;
  std::map<std::string, std::vector<Operand>> awaited_;  ///< of ops that have begun, by id
  std::map<std::string, TracedOp> ops_;
  std::map<std::string, TracedValue> values_;
};

/// Remembers the first op or move that gave this process a NaN or an infinity. No communication.
class NonFiniteObserver final : public Observer {
 public:
  void after_op(const OpEvent& event, std::span<const c10::IValue> results) override;
  void after_move(const MoveEvent& event) override;
  /// The op's id; of a move "reduce_scatter over dp_shard in ..."; or empty.
  const std::string& first() const { return first_; }
  /// How many ops and moves came before it.
  int64_t position() const { return position_; }

 private:
  void note(bool is_finite, const std::string& what);

  std::string first_;
  int64_t position_ = 0;
};

}  // namespace lockstep
