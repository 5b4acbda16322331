#pragma once
#include <ATen/core/Tensor.h>

#include <exception>
#include <functional>
#include <memory>

#include "core/range.h"
#include "runtime/redistribution/redistribute.h"
#include "runtime/tensor/shard_set.h"

namespace lockstep {

/// A product with unfinished sums of which nothing is computed yet: of one local rank, some rows at a time.
class ProductRows {
 public:
  /// The shard's rows `rows` (counted on this rank) along dimension `dim` of the tensor.
  using Compute = std::function<at::Tensor(int dim, const Range& rows)>;
  /// Called once all of it was scattered along `dim`.
  using Check = std::function<void(int dim, const ProductRows& scattered)>;
  /// `dims`: of the tensor; rows lie along any but the last. `shard_sizes`: with the nodes of an ordered sum in front.
  ProductRows(int dims, std::vector<int64_t> shard_sizes, c10::ScalarType dtype, Compute compute, Check check)
      : dims_(dims),
        shard_sizes_(std::move(shard_sizes)),
        dtype_(dtype),
        compute_(std::move(compute)),
        check_(std::move(check)) {}

  bool has_rows_along(int dim) const { return dim < dims_ - 1; }
  /// The reduce-scatter of it: what a member gets is computed, sent, and travels while the next one's is computed; our
  /// own is the last. Waits for the others'. Factors are let go. Once. REQUIRES: a reduce-scatter along a dimension
  /// that has rows. Throws TransportError.
  Shards scattered(const Move& move);
  /// All of it, after scattered().
  Shards whole() const;

 private:
  Range rows_for(const Move& move, int dim, size_t member) const;
  void make_piece(size_t member, int dim, const Range& rows);

  int dims_;
  std::vector<int64_t> shard_sizes_;
  c10::ScalarType dtype_;
  Compute compute_;
  Check check_;
  int dim_ = -1;                    ///< of the shards, along which pieces_ lie side by side
  std::vector<at::Tensor> pieces_;  ///< of each member
  std::exception_ptr failure_;      ///< of the first that could not be computed
};

}  // namespace lockstep
