#pragma once
#include <ATen/core/Tensor.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "runtime/context/numerics.h"
#include "runtime/tensor/layout.h"
#include "trainer/gradients/bucketed_reductions.h"
#include "trainer/gradients/replica_sums.h"
#include "trainer/job/batching.h"

namespace lockstep::trainer {

/// Collects the gradients of a step's microbatches and owns when they are reduced.
///
/// A parameter is used through leaves, one for each read, so that autograd adds no two uses: a tied weight's uses are
/// added last, in the order of the modules' paths. Each leaf's gradient is taken from autograd as
/// soon as it is complete for a microbatch.
///
/// Native: microbatches are added up in the order in which they end. Canonical: each is a node of the tree over the
/// step's samples, or several of them (ReplicaSums), in whatever order they end. Several may be between their forward
/// and their end. Either way axes that are still Partial are reduced once a step, in buckets: where nobody observes, a
/// gradient goes into its bucket as soon as the step's last microbatch has given it (Li et al., "PyTorch Distributed",
/// 2020, section 3.2.3).
class GradientAccumulator {
 public:
  /// `parameters` of one mesh, in the order of finish(), and their names, for observers. `place`: the stage that they
  /// are of, which names what it communicates; empty: there is one. `bucket_bytes`: as of BucketedReductions.
  /// `replicas_share`: as of update_layout().
  GradientAccumulator(std::vector<at::Tensor> parameters, const Batching& batching, Numerics numerics,
                      std::vector<std::string> names, std::string place, int64_t bucket_bytes,
                      bool replicas_share = false);
  ~GradientAccumulator();
  GradientAccumulator(const GradientAccumulator&) = delete;
  GradientAccumulator& operator=(const GradientAccumulator&) = delete;

  /// A leaf for the module whose scope is open to read `parameter` through: the same bytes, with a gradient of its own.
  /// A parameter that is not one of ours is returned as it is.
  at::Tensor leaf(const at::Tensor& parameter);

  /// What is read from here on belongs to this microbatch: its forward begins, or its backward.
  void enter(int64_t microbatch) { microbatch_ = microbatch; }

  /// The gradient of a leaf for the microbatch that was entered, where autograd is not to have it: nodes of the tree
  /// over samples (nodes_of()). Once per leaf and microbatch.
  void take_nodes(const at::Tensor& leaf, const at::Tensor& nodes);
  /// The same, of one that is as autograd would give it.
  void take_gradient(const at::Tensor& leaf, const at::Tensor& gradient);

  /// Hears of every gradient that is taken, with the number of its parameter, before it is added; may replace it.
  using GradientCallback = std::function<void(int64_t microbatch, size_t parameter, at::Tensor& gradient)>;
  void on_gradient(GradientCallback callback) { callback_ = std::move(callback); }

  /// To be called after the backward of each of the step's microbatches, once.
  void end_microbatch(int64_t microbatch);

  /// The step's gradients in the parameters' update_layout(), zero where there was none; starts the next step.
  /// REQUIRES: all microbatches have ended.
  std::vector<at::Tensor> finish();

  /// Forgets a step that did not come to its end.
  void restart();

 private:
  struct Use;
  /// Parameter, the reader's path, how many reads of it came before in the microbatch.
  using UseKey = std::tuple<size_t, std::string, int64_t>;
  struct Hook;

  bool canonical() const { return numerics_ == Numerics::kCanonical; }
  void add(Use& use, at::Tensor gradient);
  at::Tensor sum_of_step(Use& use);
  Layout target_of(const at::Tensor& parameter) const;
  void end_microbatch(int64_t microbatch, Use& use);
  void reduce_early(Use& use);

  std::vector<at::Tensor> parameters_;
  std::vector<std::string> names_;
  BucketedReductions reductions_;
  int64_t microbatches_, nodes_;
  Numerics numerics_;
  bool replicas_share_;
  std::unordered_map<const c10::TensorImpl*, size_t> index_;  ///< of each parameter
  std::map<UseKey, std::unique_ptr<Use>> uses_;
  std::unordered_map<const c10::TensorImpl*, Use*> use_of_;  ///< by leaf
  /// By microbatch; of those that have not ended.
  std::map<int64_t, std::map<std::pair<size_t, std::string>, int64_t>> reads_;
  std::set<int64_t> ended_;
  int64_t microbatch_ = 0;  ///< that was entered
  GradientCallback callback_ = [](int64_t, size_t, at::Tensor&) {};
};

}  // namespace lockstep::trainer
