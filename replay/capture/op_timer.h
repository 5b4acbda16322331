#pragma once
#include <functional>
#include <map>

#include "replay/capture/step_log.h"
#include "runtime/context/world.h"

namespace lockstep::replay {

/// What a rank did in a step, and how long each of its collectives stood still for messages, in nanoseconds.
struct TimedStep {
  StepRecording recording;       ///< ops and collectives alone
  std::vector<uint64_t> waited;  ///< by collective
};

/// Watches a step and takes times, nothing else: no value is read and none copied. On a GPU the time of an op is that
/// until it is handed over.
class OpTimer final : public Observer {
 public:
  /// `waited`: seconds that this process has stood still for messages since it began; null: it never does.
  OpTimer(const World& world, std::function<double()> waited);

  /// Forgets everything and starts anew.
  void begin();
  /// One per local rank of the World, in their order.
  std::vector<TimedStep> end(int64_t step);

  void before_op(const OpEvent& event) override { log_.begin_op(event.id); }
  void after_op(const OpEvent&, std::span<const c10::IValue>) override { log_.end_op(); }
  void before_collective(const CollectiveEvent& event) override;
  void received(const CollectiveEvent& event, int rank, int source, at::Tensor& payload) override;

 private:
  struct PerRank {
    std::vector<RecordedCollective> collectives;
    std::vector<RecordedPiece> pieces;
    std::vector<uint64_t> waited;
  };

  const World& world_;
  std::function<double()> waited_;
  double waited_before_ = 0;  ///< the collective that began last
  StepLog log_;
  std::map<int, PerRank> ranks_;
};

}  // namespace lockstep::replay
