#pragma once
#include <string>

#include "replay/format/recording.h"
#include "runtime/plain/tensor_bytes.h"

namespace lockstep::replay {

/// A copy of one rank's part, wherever it lies, as a recording holds it.
inline RecordedTensor recorded_tensor(std::string name, const at::Tensor& shard) {
  const auto plain = shard.contiguous().cpu();
  const auto bytes = bytes_of(plain);
  return {std::move(name), static_cast<int8_t>(plain.scalar_type()), plain.sizes().vec(), {bytes.begin(), bytes.end()}};
}

}  // namespace lockstep::replay
