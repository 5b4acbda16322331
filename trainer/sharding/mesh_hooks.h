#pragma once
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>

#include "models/module.h"
#include "runtime/deferred/kept_results.h"
#include "trainer/job/job.h"
#include "trainer/sharding/expert_balance.h"
#include "trainer/sharding/gathered_parameters.h"
#include "trainer/sharding/sharding_plan.h"

namespace lockstep::trainer {

/// How blocks are run.
struct BlockOptions {
  c10::ScalarType compute_dtype = c10::kFloat;
  std::set<const models::Module*> stay_gathered = {};  ///< blocks that do not free their parameters after forward
  std::set<const models::Module*> recompute = {};      ///< blocks that do not keep their activations
  std::optional<KeptMaps> kept = {};                   ///< but results of the dearest ops: of checkpointed()
  bool float8_scales_at_once = false;                  ///< GatherRecipe::float8_at_once
  std::string rotate_method = "allgather";             ///< parallelism.context_parallel_rotate_method
  bool balances_attention = false;                     ///< parallelism.context_parallel_load_balancer
  int64_t bucket_bytes = 0;                            ///< parallelism.data_parallel_bucket_cap_mb
  bool replicas_share = false;                         ///< parallelism.shard_optimizer_state
  const models::Module* last_block = nullptr;          ///< what gives logits
  int64_t sequences = 1;                               ///< of the global batch
  /// What autograd differentiates for a parameter in the scope that is open; empty: the parameter.
  std::function<at::Tensor(const models::Parameter&)> leaf = {};
  GradientTaker gradient_taker = {};  ///< nobody: autograd
};

/// What parameters and activations of a job's model are computed in.
c10::ScalarType compute_dtype(const Job& job);

/// How a job wants a model's blocks run, as torchtitan would: activation_checkpoint counts layers from 1
/// (Model::blocks), the n-th of every n are recomputed; the last block's parameters, which backward needs at once, stay
/// gathered unless fsdp_reshard_after_forward is "always".
BlockOptions block_options(const Job& job, models::Model& model);

/// Runs a model on a mesh: moves annotated activations to the plan's layouts, gathers a block's parameters for its
/// forward (and again for its backward), recomputes blocks that asked for it, brings queries and keys together.
class MeshHooks final : public models::Hooks {
 public:
  MeshHooks(ShardingPlan plan, BlockOptions options);

  /// What follows reads the parameters in the order of the microbatch before, most likely.
  void begin_microbatch() { gather_order_->restart(); }

  /// Of the tokens of the next forwards (Hooks::positions).
  void set_positions(at::Tensor positions) { positions_ = std::move(positions); }
  /// What runs has its backward in two parts; null: in one. Borrowed.
  void set_split(SplitBackward* split) { split_ = split; }
  void set_trains(bool trains) { trains_ = trains; }
  void set_adapts(bool adapts) { adapts_ = adapts; }
  /// Borrowed (Hooks::cache).
  void set_cache(models::KeyValueCache* cache) { cache_ = cache; }
  ExpertBalance& expert_balance() { return balance_; }

  at::Tensor positions() const override { return positions_; }
  bool trains() const override { return trains_; }
  bool adapts() const override { return adapts_; }
  models::KeyValueCache* cache() const override { return cache_; }
  bool gathers_float8() const override { return true; }
  c10::ScalarType compute_type() const override { return options_.compute_dtype; }

  at::Tensor annotate(const at::Tensor& tensor, std::string_view axes) override;
  at::Tensor attend(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                    const Attention& attention) override;
  at::Tensor use(const models::Parameter& parameter) override;
  at::Tensor constant(const at::Tensor& table) override;
  void balance(const models::Parameter& bias, const at::Tensor& counts, double rate) override;
  at::Tensor with_loss(const at::Tensor& x, const at::Tensor& losses) override;
  at::Tensor run_block(models::Module& block, const std::function<at::Tensor(const at::Tensor&)>& forward,
                       const at::Tensor& input) override;

 private:
  void require_compute_type(const models::Module& block, const std::vector<models::Parameter*>& parameters,
                            const at::Tensor& output) const;
  at::Tensor run_gathered(const models::Module& block, const std::function<at::Tensor(const at::Tensor&)>& forward,
                          const at::Tensor& input);
  /// `block`: the path of the module that they are gathered for, below the open one; empty: that itself.
  GatheredParameters gather(const std::vector<models::Parameter*>& parameters, std::string_view block = {}) const;

  ShardingPlan plan_;
  BlockOptions options_;
  at::Tensor positions_;
  SplitBackward* split_ = nullptr;
  bool trains_ = true, adapts_ = true;
  models::KeyValueCache* cache_ = nullptr;
  ExpertBalance balance_;
  std::shared_ptr<GatherOrder> gather_order_ = std::make_shared<GatherOrder>();
  /// By sizes, then by axes.
  std::map<std::vector<int64_t>, std::map<std::string, Layout, std::less<>>> activation_layouts_;
  struct Gathered {
    at::Tensor tensor;
    bool is_read = false;
  };
  std::unordered_map<const models::Parameter*, Gathered> gathered_;
  /// Tables by where they lie, and what was made of them. Kept, as another one could lie there later.
  std::map<std::pair<const void*, std::vector<int64_t>>, std::pair<at::Tensor, at::Tensor>> constants_;
};

}  // namespace lockstep::trainer
