#pragma once
#include <ATen/core/Tensor.h>

#include <optional>
#include <vector>

#include "runtime/redistribution/redistribute.h"
#include "runtime/tensor/layout.h"

namespace lockstep::trainer {

/// What gathering needs to know, in forward, when gathering again, and in backward.
struct GatherRecipe {
  std::vector<Layout> layouts;  ///< of computation, one per parameter
  c10::ScalarType dtype;        ///< of computation
  int shard_axis;               ///< the mesh axis whose cut is undone (-1: none)

  bool operator==(const GatherRecipe&) const = default;
};

/// Gathers parameters, each time those that the next block will ask for as well: their bytes travel while this block
/// computes. Which they are was learned in the microbatch before; where that one went another way, nothing is lost but
/// the time of a gather. Costs the memory of one more block; only where World::overlaps().
class GatherOrder {
 public:
  /// The parameters in the recipe's dtype and layouts. No autograd.
  std::vector<at::Tensor> gather(at::TensorList parameters, const GatherRecipe& recipe);
  /// A microbatch begins: it asks for what the one before asked for, from the first on.
  void restart();

 private:
  struct Request {
    std::vector<at::Tensor> parameters;
    GatherRecipe recipe;

    bool operator==(const Request& other) const;
    PendingBucket bucket() const;
    /// Grows when a parameter is written.
    int64_t version() const;
  };

  void learn(const Request& request);
  std::optional<PendingBucket> take_pending();
  void start_next();

  std::vector<Request> requests_;  ///< of a microbatch, in order
  size_t next_ = 0;
  std::optional<PendingBucket> pending_;  ///< of requests_[next_]
  int64_t version_ = 0;                   ///< of its parameters when it departed
};

}  // namespace lockstep::trainer
