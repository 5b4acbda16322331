#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "models/module.h"
#include "runtime/tensor/mesh.h"
#include "runtime/tensor/spec.h"
#include "trainer/gradients/block_reduction.h"
#include "trainer/gradients/gradient_accumulator.h"
#include "trainer/job/batching.h"
#include "trainer/sharding/mesh_hooks.h"
#include "trainer/sharding/sharding_plan.h"

namespace lockstep::trainer {

class Stage;

/// A parameter of another stage that this one reads, too: a tied head's table.
struct SharedParameter {
  const models::Parameter* parameter;
  const Stage* owner;
  at::Tensor copy;  ///< on the mesh of the stage that reads it, in the parameter's layout
};

/// A run of a model's blocks, and the part of a mesh where it is. Without a pipeline one stage is all of both.
class Stage {
 public:
  struct Place {
    int64_t number = 0, count = 1;  ///< of how many
    size_t first = 0, end = 0;      ///< blocks [first, end)
  };
  /// Hears of a gradient of a parameter of this name; may replace it.
  using GradientCallback = std::function<void(int64_t microbatch, const std::string& name, at::Tensor& gradient)>;

  Stage(models::Model& model, ShardingPlan plan, Place place, const Batching& batching, BlockOptions options);

  const Mesh& mesh() const { return plan_.mesh(); }
  const ShardingPlan& plan() const { return plan_; }
  MeshHooks& hooks() { return hooks_; }
  int64_t number() const { return place_.number; }
  /// In names of ops: "stages.1".
  std::string path() const;
  bool is_first() const { return place_.number == 0; }
  bool is_last() const { return place_.number + 1 == place_.count; }
  /// Whether any of its ranks lives in this process.
  bool is_here() const { return mesh().local_count() > 0; }
  /// Those that live here, in the model's order.
  const std::vector<models::Parameter*>& parameters() const { return parameters_; }
  std::vector<SharedParameter>& shared() { return shared_; }
  /// Those of other stages that its blocks read. REQUIRES: there are several stages.
  std::vector<const models::Parameter*> read_elsewhere() const;

  /// To be called once the parameters have their tensors.
  void start(std::vector<SharedParameter> shared, const GradientCallback& callback);
  /// Of parameters() and shared() that are trainable, in this order.
  GradientAccumulator& accumulator() { return *accumulator_; }

  /// How a step's gradient of a parameter lies where the parameter is.
  const TensorSpec& gradient_spec(const models::Parameter& parameter) const;

  /// To be called after the backward of each microbatch, once: what is under way of its gradients arrives.
  void end_microbatch(int64_t microbatch);
  /// Forgets the gradients of a step that did not come to its end.
  void restart();

  /// What its blocks make of `input`, in the scopes that are open: of tokens or what the stage before it gave, what it
  /// hands on or logits. `tokens`: the tokens' sizes.
  at::Tensor forward(const at::Tensor& input, at::IntArrayRef tokens);

  /// Of what it takes from the stage before it, for tokens of these sizes. REQUIRES: it is not the first.
  const TensorSpec* input_spec(at::IntArrayRef tokens) const;

 private:
  BlockOptions with_leaves(BlockOptions options, const Batching& batching);
  const at::Tensor& tensor_of(const models::Parameter& parameter) const;
  std::vector<models::BlockCall> calls_for(at::IntArrayRef tokens);

  models::Model& model_;
  Place place_;
  Batching batching_;
  c10::ScalarType dtype_;
  int64_t bucket_bytes_;
  bool replicas_share_;
  std::vector<models::Parameter*> parameters_;
  ShardingPlan plan_;
  BlockReductions reductions_;
  MeshHooks hooks_;
  std::unique_ptr<GradientAccumulator> accumulator_;
  std::vector<SharedParameter> shared_;
};

}  // namespace lockstep::trainer
