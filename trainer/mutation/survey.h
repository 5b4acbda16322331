#pragma once
#include <map>
#include <set>
#include <string>
#include <vector>

#include "runtime/context/observer.h"
#include "trainer/mutation/site.h"
#include "trainer/step/training_run.h"

namespace lockstep::trainer {

/// All places of one step where a value can go wrong, in the order of the program.
class Survey final : public Observer, public StepListener {
 public:
  void before_op(const OpEvent& event) override;
  void after_op(const OpEvent& event, std::span<const c10::IValue> results) override;
  void before_collective(const CollectiveEvent& event) override;
  void after_move(const MoveEvent& event) override;

  void begin_step(int64_t, const TokenBatch&, double, const TrainingState&) override {}
  void take_gradient(int64_t microbatch, const std::string& parameter, at::Tensor& gradient) override;
  void end_step(std::span<const StepScalar>) override {}

  const std::vector<Site>& sites() const { return sites_; }

 private:
  void add_arguments(const OpEvent& event);

  std::vector<Site> sites_;
  std::map<std::string, int64_t> moves_, pieces_;  ///< of each id
  std::set<std::string> gradients_;                ///< of several uses the first
  int64_t draws_ = 0;
};

}  // namespace lockstep::trainer
