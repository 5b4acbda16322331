#include "runtime/kernels/attention/attention_loops.h"

#include <algorithm>

#include "runtime/kernels/attention/attention_work.h"

namespace lockstep::kernels {
namespace {

template <class Input, class T>
const AttentionKernels<Input, T>& kernels_for(InstructionSet set) {
#if defined(__x86_64__)
  if (set == InstructionSet::kAvx512) return avx512_attention<Input, T>();
  if (set == InstructionSet::kAvx2) return avx2_attention<Input, T>();
#endif
  return baseline_attention<Input, T>();
}

}  // namespace

RowBlocks row_blocks(const ProductPlan& plan, int64_t group, int64_t limit, int64_t tile_rows) {
  RowBlocks blocks;
  const auto whole_tiles = [&](int64_t rows) { return (rows + tile_rows - 1) / tile_rows * tile_rows; };
  for (int64_t leaf = 0; leaf < static_cast<int64_t>(plan.groups.size()); ++leaf) {
    const auto& group_of_leaf = plan.groups[static_cast<std::size_t>(leaf)];
    const int64_t length = group_of_leaf.length * group;
    if (blocks.all.empty() || blocks.all.back().rows + length > limit)
      blocks.all.push_back({leaf, leaf, group_of_leaf.position * group, 0, 0});
    blocks.all.back().end_leaf = leaf + 1;
    blocks.all.back().rows += length;
  }
  for (RowBlock& block : blocks.all) {
    block.packed = blocks.packed_rows;
    blocks.packed_rows += whole_tiles(block.rows);
    blocks.most_rows = std::max(blocks.most_rows, whole_tiles(block.rows));
  }
  return blocks;
}

template <class Input, class T>
void attention_forward(const AttentionForward<Input, T>& work, const Workers& workers, InstructionSet set) {
  const AttentionShape& shape = work.shape;
  const int64_t heads = shape.batch * shape.heads;
  if (heads * shape.rows * shape.group == 0) return;
  // Where there are fewer heads than threads, they share the rows of a head; each packs its keys and values.
  constexpr int64_t kFewestRows = 64;
  const int64_t pieces =
      std::clamp<int64_t>((workers.count + heads - 1) / heads, 1, (shape.rows + kFewestRows - 1) / kFewestRows);
  const int64_t rows = (shape.rows + pieces - 1) / pieces;
  const auto& kernels = kernels_for<Input, T>(set);
  workers(heads * pieces, [&](int64_t item) {
    const int64_t head = item / pieces, first = item % pieces * rows;
    if (first >= shape.rows) return;
    kernels.forward({&work, head / shape.heads, head % shape.heads, first, std::min(rows, shape.rows - first)});
  });
}

template <class Input, class T>
void attention_backward(const AttentionBackward<Input, T>& work, const Workers& workers, InstructionSet set) {
  const AttentionShape& shape = work.shape;
  const ProductPlan plan = plan_product(Contraction::over(work.all_rows, work.first, shape.rows), /*group_limit=*/0);
  const auto& kernels = kernels_for<Input, T>(set);
  workers(shape.batch * shape.heads, [&](int64_t item) {
    kernels.backward({&work, &plan, item / shape.heads, item % shape.heads});
  });
}

#define LOCKSTEP_INSTANTIATE(Input, T)                                                                \
  template void attention_forward(const AttentionForward<Input, T>&, const Workers&, InstructionSet); \
  template void attention_backward(const AttentionBackward<Input, T>&, const Workers&, InstructionSet)
LOCKSTEP_INSTANTIATE(float, float);
LOCKSTEP_INSTANTIATE(Bfloat16, float);
LOCKSTEP_INSTANTIATE(double, double);
#undef LOCKSTEP_INSTANTIATE

}  // namespace lockstep::kernels
