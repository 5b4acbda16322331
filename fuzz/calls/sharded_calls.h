#pragma once
#include <optional>
#include <string>
#include <vector>

#include "fuzz/cases/op_cases.h"
#include "runtime/context/world.h"
#include "runtime/planning/make_plan.h"
#include "runtime/planning/op_sharding.h"
#include "runtime/planning/rule.h"
#include "runtime/planning/rule_set.h"
#include "runtime/tensor/sharded_tensor.h"

namespace lockstep::testing {

using Rules = std::shared_ptr<const RuleSet>;

/// A sharded tensor whose Partial axes hold values that differ on every rank: sums of all ranks' noise, an owner of a
/// maximum that is another rank at every element, and so on. (distribute() leaves all to the first rank, where a rule
/// that forgets to reduce often looks right.)
at::Tensor scatter(const at::Tensor& plain, const Layout& layout);

/// One call: the handle and all its arguments as plain tensors of their declared dtypes.
struct OpCall {
  c10::OperatorHandle op;
  Stack arguments;
  std::vector<Slot> slots;  ///< the tensors among the arguments

  at::Tensor tensor(size_t slot) const;
  bool writes(size_t slot) const;
};

/// The tensor in a slot of an argument list.
at::Tensor tensor_in(const Stack& arguments, const Slot& slot);

/// All of a call's tensors.
std::vector<at::Tensor> tensors_of(const OpCall& call);

/// The call of "add.Tensor" or "mesh::attention" with the schema's defaults behind `leading`.
OpCall make_call(const std::string& op, const Stack& leading);
c10::OperatorHandle find_op(const std::string& op);
/// The handle of "add_.Tensor" for "add.Tensor"; none if there is no such op.
std::optional<c10::OperatorHandle> in_place_form(const std::string& op);

/// The arguments with other tensors in the slots.
Stack with_tensors(const OpCall& call, const std::vector<at::Tensor>& tensors);

/// Runs a call and returns its results, then the arguments that it writes.
std::vector<at::Tensor> run(const c10::OperatorHandle& op, Stack arguments);

/// How numbers are stored and compared.
struct Numerics {
  c10::ScalarType dtype = c10::kFloat;
  bool exact = true;
  Domain domain = Domain::kDeclared;
  /// Of reals: what the largest element counts as if it is smaller. Inputs are of order 1 and may cancel.
  double least = 0.01;
};

/// The arguments of the reference: clones, in the domain's storage.
Stack plain_arguments(const OpCall& call, const Numerics& numerics);

/// What differs between a sharded tensor and the plain one it should equal; empty if nothing does.
std::string difference(const at::Tensor& actual, const at::Tensor& expected, const Numerics& numerics, bool values);

/// The first elements of a plain tensor, each behind a space.
std::string values_of(const at::Tensor& tensor);

/// The form of a call under its rule, with the sizes and declared dtypes of its results.
OpSharding sharding_of(const Rule& rule, const OpCall& call, const std::vector<at::Tensor>& results);

/// "add.Tensor(f32[3,4] [a=S(0)], f32[4] [a=R], 2) on a=2, float64"
std::string describe(const OpCall& call, const std::vector<at::Tensor>& tensors, const Mesh& mesh,
                     const Numerics& numerics);

}  // namespace lockstep::testing
