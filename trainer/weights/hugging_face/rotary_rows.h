#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>

/// Two orders of the rows of a weight that gives queries or keys. A head of size d has d / 2 rotary pairs: side by side
/// (ours, torchtitan's, Meta's), row 2 i + half; or apart (transformers'), row half * d / 2 + i.
namespace lockstep::trainer {

/// Rows that stand so from `first` on, [count, ...].
using ReadRows = std::function<at::Tensor(int64_t first, int64_t count)>;

/// Rows `first` to `first + count - 1` with the pairs together, of heads whose pairs are apart; reads whole heads.
at::Tensor pairs_together(const ReadRows& apart, int64_t head_size, int64_t first, int64_t count);

/// All rows with the pairs apart. REQUIRES: whole heads, the pairs together.
at::Tensor pairs_apart(const at::Tensor& together, int64_t head_size);

}  // namespace lockstep::trainer
