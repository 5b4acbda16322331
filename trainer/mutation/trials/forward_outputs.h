#pragma once
#include <map>
#include <string>

#include "runtime/context/observer.h"

namespace lockstep::trainer {

/// What the ops of forward gave, whole: what checks of activations compare.
class ForwardOutputs final : public Observer {
 public:
  void after_op(const OpEvent& event, std::span<const c10::IValue> results) override;

  /// Whether the last result of any module is further from `right` than `tolerance` of its largest element.
  bool module_differs(const ForwardOutputs& right, double tolerance) const;

 private:
  std::map<std::string, at::Tensor> by_module_;  ///< of each step and microbatch
};

}  // namespace lockstep::trainer
