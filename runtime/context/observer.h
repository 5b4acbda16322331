#pragma once
#include <ATen/core/ivalue.h>

#include <span>
#include <string>
#include <vector>

#include "runtime/context/op_id.h"
#include "runtime/context/traffic.h"
#include "runtime/tensor/mesh.h"
#include "runtime/tensor/shard_set.h"

namespace c10 {
class OperatorHandle;
}

namespace lockstep {

struct Plan;
struct TensorSpec;

/// One dispatched op, as observers see it. Valid for the length of the call.
struct OpEvent {
  const OpId& id;
  const c10::OperatorHandle& op;
  std::span<const c10::IValue> arguments;  ///< before the op: unmodified inputs
  const Plan& plan;
};

/// One collective of one mesh axis, before data moves.
struct CollectiveEvent {
  const OpId& id;  ///< of the op that asked for it
  const Mesh& mesh;
  int axis;
  CollectiveKind kind;
  c10::ScalarType dtype;
  uint64_t number;                   ///< Mesh::next_collective()
  uint32_t purpose;                  ///< MessageHeader::purpose: the op and what is moved
  std::span<const uint64_t> groups;  ///< MessageHeader::group of each of the mesh's local ranks
};

/// One tensor whose placement on one mesh axis has changed, as an operand of an op or on its own.
struct MoveEvent {
  const OpId& id;  ///< of what asked for it
  int axis;
  const CollectiveKind* kind;  ///< null: no rank needed what another has
  const TensorSpec& before;
  const Shards& shards_before;
  const TensorSpec& after;
  const Shards& shards_after;
};

/// What a program makes of ops' results without an op: microbatches' gradients joined, a loss, a scale. Faults are
/// planted in it: what it refers to may be changed.
struct ValueEvent {
  const OpId& id;  ///< "accumulate_gradients", "loss"
  const Mesh& mesh;
  const TensorSpec* spec;  ///< of a tensor; null: a number
  const Shards& shards;
  double& number;
};

/// Sees every op and every collective: verifier, recorder, profiler and replica check are observers.
class Observer {
 public:
  virtual ~Observer() = default;
  virtual void before_op(const OpEvent&) {}
  /// `results` may hold pending tensors; do not touch those.
  virtual void after_op(const OpEvent&, std::span<const c10::IValue> /*results*/) {}
  /// May veto by throwing.
  virtual void before_collective(const CollectiveEvent&) {}
  /// What a local rank received from `source` (a rank), as it will be used; may be changed in place (replay does).
  virtual void received(const CollectiveEvent&, int /*rank*/, int /*source*/, at::Tensor& /*payload*/) {}
  /// After its collective, if it has one. Of a run without values: not called.
  virtual void after_move(const MoveEvent&) {}
  /// Before anybody uses it. Of a run without values: not called.
  virtual void after_value(const ValueEvent&) {}
};

/// The observers of a World, called in the order they were added. Ops that an observer dispatches are not observed.
class Observers {
 public:
  void add(Observer* observer) { observers_.push_back(observer); }
  void remove(Observer* observer) { std::erase(observers_, observer); }
  bool empty() const { return observers_.empty() || hidden_; }

  template <class Call>
  void notify(const Call& call) {
    if (empty()) return;
    hidden_ = true;
    const struct Restore {
      bool& flag;
      ~Restore() { flag = false; }
    } restore{hidden_};
    for (auto* observer : observers_) call(*observer);
  }

 private:
  std::vector<Observer*> observers_;
  bool hidden_ = false;
};

/// Adds an observer for the length of a scope.
class ObserverScope {
 public:
  ObserverScope(Observers& observers, Observer& observer) : observers_(observers), observer_(&observer) {
    observers_.add(observer_);
  }
  ~ObserverScope() { observers_.remove(observer_); }
  ObserverScope(const ObserverScope&) = delete;
  ObserverScope& operator=(const ObserverScope&) = delete;

 private:
  Observers& observers_;
  Observer* observer_;
};

}  // namespace lockstep
