#pragma once
#include "core/digest/tensor_digest.h"
#include "runtime/tensor/tensor_bytes.h"

namespace lockstep::trainer {

/// Of the bytes of one rank's shard, wherever it lies.
inline Digest digest_of_shard(const at::Tensor& shard) { return tensor_digest(bytes_of(shard.cpu().contiguous())); }

}  // namespace lockstep::trainer
