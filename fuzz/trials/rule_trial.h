#pragma once
#include "fuzz/calls/arranger.h"
#include "fuzz/calls/drawn_mesh.h"
#include "fuzz/calls/operand_forms.h"
#include "fuzz/calls/reference.h"
#include "fuzz/trials/rule_properties.h"
#include "runtime/planning/plan.h"

namespace lockstep::testing {

/// One call with its expected results.
class Trial {
 public:
  Trial(const OpCase& op_case, const Rules& rules, bool strict = false);

  const Mesh& mesh() const { return *drawn_.mesh; }
  const OpCall& call() const { return call_; }
  const Rule& rule() const { return *rules_->find(op_case_.op); }
  OpSharding sharding() const;

  /// Fails the property unless the op on operands that lie so gives what one device gives; also `in_groups`, where the
  /// ranks are those of two Worlds.
  void expect(const std::vector<OperandForm>& forms, bool in_groups) const;
  /// The same with the operands as the choice says, each of that kind where it can be; also checks that nothing moves
  /// and how the results lie.
  void expect(const Arranger& arranger, const std::vector<size_t>& chosen,
              const std::vector<OperandForm::Kind>& kinds) const;
  /// For ops without operands.
  void expect_factory() const;

 private:
  /// What one World made of the call: a refusal, or what is wrong, or neither.
  struct Verdict {
    std::string refusal, wrong;
  };
  Verdict verdict(const Mesh& mesh, const std::vector<at::Tensor>& tensors) const;
  void check(const std::vector<Verdict>& verdicts, const std::string& line) const;
  std::string wrong(const std::vector<at::Tensor>& actual) const;
  void check_plan(const Arranger& arranger, const std::vector<size_t>& chosen, const Stack& arguments,
                  const std::string& line) const;
  bool rounds_partial(const ChosenLayouts& choice) const;

  const OpCase& op_case_;
  Rules rules_;
  Numerics numerics_;
  OpCall call_;
  std::vector<at::Tensor> expected_;
  DrawnMesh drawn_;
};

}  // namespace lockstep::testing
