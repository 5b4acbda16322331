#pragma once
#include <optional>

#include "fuzz/trials/rule_properties.h"
#include "fuzz/trials/sharded_calls.h"
#include "runtime/planning/choose_layouts.h"
#include "runtime/planning/plan.h"

namespace lockstep::testing {

/// A mesh of its own world, drawn: 1 to 3 axes of at most 8 ranks, or 4 of at most 32; or a part of such a mesh.
struct DrawnMesh {
  DrawnMesh(Domain domain, const Rules& rules, bool strict, lockstep::Numerics numerics = lockstep::Numerics::kNative);
  std::unique_ptr<World> world;
  const Mesh* mesh;
};

/// Numbers for a case: exact inputs in any dtype, or reals in the float64 domain or declared as doubles.
Numerics draw_numerics(const OpCase& op_case);

/// A random layout for a tensor: any reduction its dtype allows, units up to 3, any cut order.
Layout draw_layout(const Mesh& mesh, const at::Tensor& tensor);

/// Turns one candidate per mesh axis into layouts, with units and cut orders that are drawn once.
class Arranger {
 public:
  Arranger(const Mesh& mesh, const OpSharding& sharding);

  const std::vector<Candidate>& all() const { return all_; }
  /// None where such layouts do not exist: an average of integers, or Partials that do not commute.
  std::optional<ChosenLayouts> arrange(const std::vector<size_t>& chosen, const OpCall& call) const;
  /// Some candidates with the chosen one's operands on each axis give results that lie so.
  bool predicts(const std::vector<size_t>& chosen, size_t result, const Layout& layout) const;
  std::vector<size_t> draw_choice() const;

 private:
  Layout layout(const OpShardingDims& dims, const std::vector<size_t>& chosen, bool result, size_t index) const;

  const Mesh& mesh_;
  const OpSharding& form_;
  std::vector<Candidate> all_;
  std::vector<std::vector<int64_t>> units_;  ///< per label and axis
  std::vector<int> order_;                   ///< axes, the first cuts first
};

/// One call with its expected results.
class Trial {
 public:
  Trial(const OpCase& op_case, const Rules& rules, bool strict = false);

  const Mesh& mesh() const { return *drawn_.mesh; }
  const OpCall& call() const { return call_; }
  const Rule& rule() const { return *rules_->find(op_case_.op); }
  OpSharding sharding() const;

  /// Fails the property unless the op on `tensors` gives what one device gives.
  void expect(const std::vector<at::Tensor>& tensors) const;
  /// The same with the operands as the choice says; also checks that nothing moves and how the results lie.
  void expect(const Arranger& arranger, const std::vector<size_t>& chosen) const;
  /// For ops without operands.
  void expect_factory() const;

 private:
  void compare(const std::vector<at::Tensor>& actual, const std::string& line) const;
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

/// The reference's results, stored as the domain says: LibTorch's, or for random ops those of a mesh of one rank.
std::vector<at::Tensor> reference(const OpCase& op_case, const OpCall& call, const Numerics& numerics);

/// Scattered tensors for a call's slots.
std::vector<at::Tensor> scatter_all(const OpCall& call, const std::vector<Layout>& layouts);

/// Gradients of the floating operands, of a linear function of the call's results with such weights; undefined where
/// there is none.
using Place = std::function<at::Tensor(const at::Tensor&)>;
std::vector<at::Tensor> draw_weights(const std::vector<at::Tensor>& results);
std::vector<at::Tensor> sharded_gradients(const OpCall& call, const std::vector<at::Tensor>& operands,
                                          const std::vector<at::Tensor>& weights, const Place& place);

/// The reference's gradients, stored as the domain says; undefined where there is none.
std::vector<at::Tensor> reference_gradients(const OpCase& op_case, const OpCall& call,
                                            const std::vector<at::Tensor>& weights, const Numerics& numerics);

}  // namespace lockstep::testing
