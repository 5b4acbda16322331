#pragma once
#include <ATen/core/Tensor.h>

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "runtime/redistribution/redistribute.h"
#include "runtime/tensor/layout.h"

namespace lockstep::trainer {

/// What gathering needs to know, in forward, when gathering again, and in backward.
struct GatherRecipe {
  std::vector<Layout> layouts;          ///< of computation, one per parameter
  std::vector<c10::ScalarType> dtypes;  ///< the same
  /// Of each parameter whether it is quantised first: one byte an element travels, and what comes is float32 (empty: of
  /// none). The scale is that of the whole parameter.
  std::vector<bool> float8 = {};
  bool float8_at_once = false;  ///< maxima of all parameters that are known to be gathered so are reduced together

  bool operator==(const GatherRecipe&) const = default;
};

/// Parameters on their way.
class PendingGather {
 public:
  /// `maxima`: the largest magnitude of each that is quantised, on every rank; not defined for the others.
  PendingGather(const std::vector<at::Tensor>& parameters, const GatherRecipe& recipe, std::vector<at::Tensor> maxima);
  /// As of a PendingBucket.
  void start() { bucket_->start(); }
  std::vector<at::Tensor> finish();

 private:
  std::vector<at::Tensor> maxima_;
  std::optional<PendingBucket> bucket_;
};

/// Gathers parameters, each time those that the next block will ask for as well: their bytes travel while this block
/// computes. Which they are was learned in the microbatch before; where that one went another way, nothing is lost but
/// the time of a gather. Costs the memory of one more block; only where World::overlaps().
class GatherOrder {
 public:
  /// The parameters in the recipe's dtypes and layouts. No autograd.
  std::vector<at::Tensor> gather(at::TensorList parameters, const GatherRecipe& recipe);
  /// One of them, which nobody asked for before.
  at::Tensor gather_alone(const at::Tensor& parameter, const GatherRecipe& recipe);
  /// A microbatch begins: it asks for what the one before asked for, from the first on.
  void restart();

 private:
  struct Request {
    std::vector<at::Tensor> parameters;
    GatherRecipe recipe;

    bool operator==(const Request& other) const;
    /// Grows when a parameter is written.
    int64_t version() const;
  };

  void learn(const Request& request);
  std::optional<PendingGather> take_pending();
  void start_next();

  PendingGather pending(const Request& request);
  /// Those that were not reduced since their parameters were written are, with one all-reduce.
  std::vector<at::Tensor> maxima_of(const Request& request);
  void add_others(std::vector<at::Tensor>& parameters) const;
  const at::Tensor* known_maximum(const at::Tensor& parameter) const;
  void reduce_maxima(const std::vector<at::Tensor>& parameters);

  std::vector<Request> requests_;  ///< of a microbatch, in order
  size_t next_ = 0;
  std::optional<PendingGather> pending_;  ///< of requests_[next_]
  int64_t version_ = 0;                   ///< of its parameters when it departed
  /// Largest magnitudes of parameters as they were when their version was that.
  struct Maximum {
    int64_t version;
    at::Tensor value;
  };
  std::map<std::shared_ptr<ShardSet>, Maximum> maxima_;
};

}  // namespace lockstep::trainer
