#pragma once
#include <map>
#include <string>

#include "runtime/context/observer.h"
#include "trainer/mutation/site.h"

namespace lockstep::trainer {

/// What the ops of forward gave, whole: what checks of activations compare.
class ForwardOutputs final : public Observer {
 public:
  void after_op(const OpEvent& event, std::span<const c10::IValue> results) override;

  /// Whether the last result of any module is further from `right` than `tolerance` of its largest element.
  bool module_differs(const ForwardOutputs& right, double tolerance) const;
  /// The same of the op of a site, by itself.
  bool op_differs(const ForwardOutputs& right, const Site& site, double tolerance) const;

 private:
  std::map<std::string, at::Tensor> by_op_, by_module_;  ///< by id of each step
};

}  // namespace lockstep::trainer
