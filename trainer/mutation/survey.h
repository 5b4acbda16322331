#pragma once
#include <map>
#include <string>
#include <vector>

#include "runtime/context/observer.h"
#include "trainer/mutation/site.h"

namespace lockstep::trainer {

/// All places of one step where a value can go wrong, in the order of the program.
class Survey final : public Observer {
 public:
  void after_op(const OpEvent& event, std::span<const c10::IValue> results) override;
  void before_collective(const CollectiveEvent& event) override;
  void after_move(const MoveEvent& event) override;

  const std::vector<Site>& sites() const { return sites_; }

 private:
  std::vector<Site> sites_;
  std::map<std::string, int64_t> moves_, pieces_;  ///< of each id
  int64_t draws_ = 0;
};

}  // namespace lockstep::trainer
