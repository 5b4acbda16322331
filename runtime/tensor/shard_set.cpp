#include "runtime/tensor/shard_set.h"

namespace lockstep {

void ShardSet::complete() {
  if (failure_) std::rethrow_exception(failure_);
  try {
    shards_ = pending_();
  } catch (...) {
    failure_ = std::current_exception();  // half a collective cannot be made again
    throw;
  }
  pending_ = nullptr;
}

}  // namespace lockstep
