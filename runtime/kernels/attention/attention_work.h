#pragma once
#include <vector>

#include "runtime/kernels/attention/attention_loops.h"

namespace lockstep::kernels {

/// What an instruction set is asked for: query rows [first, first + rows) of all query heads of one key-value head.
template <class Input, class T>
struct ForwardPiece {
  const AttentionForward<Input, T>* work;
  int64_t batch, head, first, rows;
};

/// All of one key-value head.
template <class Input, class T>
struct BackwardPiece {
  const AttentionBackward<Input, T>* work;
  const ProductPlan* plan;  ///< over query rows, each leaf a group
  int64_t batch, head;
};

/// Leaves [first_leaf, end_leaf): rows [first, first + rows), their packed queries and gradients from `packed` on.
/// Rows are counted with the heads of the group inside.
struct RowBlock {
  int64_t first_leaf, end_leaf, first, rows, packed;
};
struct RowBlocks {
  std::vector<RowBlock> all;
  int64_t packed_rows = 0, most_rows = 0;  ///< of all blocks, of one, in whole tiles
};
/// As many leaves in a block as fit into `limit` rows; one, however large.
RowBlocks row_blocks(const ProductPlan& plan, int64_t group, int64_t limit, int64_t tile_rows);

template <class Input, class T>
struct AttentionKernels {
  void (*forward)(const ForwardPiece<Input, T>& piece);
  void (*backward)(const BackwardPiece<Input, T>& piece);
};

template <class Input, class T>
const AttentionKernels<Input, T>& baseline_attention();
template <class Input, class T>
const AttentionKernels<Input, T>& avx2_attention();
template <class Input, class T>
const AttentionKernels<Input, T>& avx512_attention();

}  // namespace lockstep::kernels
