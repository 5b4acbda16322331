#pragma once
#include <ATen/core/Tensor.h>

#include <memory>

#include "runtime/exchange/exchange.h"
#include "runtime/redistribution/redistribute.h"
#include "runtime/tensor/shard_set.h"

namespace lockstep {

/// An all-gather of one local rank's shard whose pieces are used as they come: its own is here, the others travel.
class ArrivingRows {
 public:
  /// Begins it. The shard must not be written until whole() has returned. REQUIRES: an all-gather; World::overlaps();
  /// one local rank.
  ArrivingRows(const Move& move, const at::Tensor& shard);
  ~ArrivingRows();

  /// Of the tensor, along which pieces lie side by side in the order of the group.
  int dim() const;
  size_t members() const;
  size_t own() const;
  /// Waits for it. To be read until whole(). Throws TransportError.
  at::Tensor piece(size_t member);
  /// Waits for all, and until the shard has left. Once.
  Shards whole();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace lockstep
