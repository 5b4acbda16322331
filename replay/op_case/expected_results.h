#pragma once
#include <ATen/core/operator_name.h>

#include <optional>
#include <string>
#include <vector>

#include "consistency/blame.h"
#include "consistency/ops/rounding.h"
#include "replay/store/op_case.h"
#include "runtime/context/observer.h"

namespace lockstep::replay {

/// What one device gave, and the comparison with it of the first op of a name: in bits, in the float64 domain to 1e-9,
/// under native numerics to what rounding may do. A result that has nothing to be compared with is no agreement.
class ExpectedResults final : public Observer {
 public:
  /// Throws BadInput where the case holds no result of one device.
  ExpectedResults(const OpCase& one, const c10::OperatorName& op, const World& world);

  void before_op(const OpEvent& event) override;

  /// Throws BadInput where the op's results are not as many, or not of the sizes, of one device's.
  void after_op(const OpEvent& event, std::span<const c10::IValue> results) override;

  /// What differs, if anything. Throws BadInput if the op did not run on shards.
  std::optional<Blame> result() const;

 private:
  std::optional<Blame> compared_as_rounded(const OpEvent& event, const std::vector<at::Tensor>& computed);
  void require_comparable(const std::vector<at::Tensor>& tensors) const;

  std::string id_;
  c10::OperatorName op_;
  std::vector<at::Tensor> expected_;
  double tolerance_ = 0;
  std::optional<OneDevice> in_double_;     ///< where results are rounded
  std::optional<TakenOperands> operands_;  ///< of the op that has begun, there
  bool came_ = false;
  std::optional<Blame> blame_;
};

}  // namespace lockstep::replay
