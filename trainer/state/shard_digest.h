#pragma once
#include <vector>

#include "core/digest/tensor_digest.h"
#include "runtime/plain/plain_tensors.h"
#include "runtime/plain/tensor_bytes.h"
#include "runtime/tensor/sharded_tensor.h"

namespace lockstep::trainer {

/// Of the bytes of one rank's shard, wherever it lies.
inline Digest digest_of_shard(const at::Tensor& shard) { return tensor_digest(bytes_of(shard.cpu().contiguous())); }

/// Of every shard of this process, in the order of the mesh's local ranks.
inline std::vector<Digest> digests_of_shards(const at::Tensor& tensor) {
  const PlainTensors guard;
  std::vector<Digest> digests;
  for (const auto& shard : sharded(tensor).shards()->whole()) digests.push_back(digest_of_shard(shard));
  return digests;
}

}  // namespace lockstep::trainer
