#pragma once
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>

#include <optional>
#include <vector>

#include "runtime/context/observer.h"
#include "trainer/mutation/mutant.h"

namespace lockstep::trainer {

/// The op of a site as a run calls it, with whole operands.
class OneOp final : public Observer {
 public:
  explicit OneOp(const Site& site) : key_(site_key(site.id)) {}
  void before_op(const OpEvent& event) override;

  bool has_come() const { return op_.has_value(); }
  /// Its results as plain tensors, where it runs alone on a mesh, operands cut along their first dimension. `mutant`:
  /// with its fault; null: without.
  std::vector<at::Tensor> results_on(const char* mesh, const Mutant& of, const Mutant* mutant) const;

 private:
  std::string key_;
  std::optional<c10::OperatorHandle> op_;
  std::vector<c10::IValue> arguments_;
};

/// What a test of the op by itself sees, as libraries have one for each op: forward alone, on two ranks, against one,
/// to 1e-5 of the largest element. Of a fault that is not in a forward, or on a rank that such a test does not have,
/// nothing.
bool is_seen_by_one_op(const Mutant& mutant);

}  // namespace lockstep::trainer
