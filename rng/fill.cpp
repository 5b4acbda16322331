#include "rng/fill.h"

#include <algorithm>

#include "rng/bulk.h"
#include "rng/resolve.h"
#include "rng/runs.h"

namespace lockstep::rng {
namespace {

/// Draws runs of consecutive elements: whole blocks straight into place, the rest through a small buffer.
template <class Draw, class Store>
class RunFiller {
 public:
  using Stored = typename Store::Stored;
  RunFiller(const Draw& draw, Key key, uint64_t stream, InstructionSet set)
      : draw_(draw), key_(key), stream_(stream), bulk_(bulk_function<Draw, Store>(set)) {}

  void operator()(Stored* out, const Run& run) const {
    int64_t done = 0;
    while (done < run.count) {
      const uint64_t index = run.index + static_cast<uint64_t>(done);
      const int64_t left = run.count - done;
      const bool direct = run.stride == 1 && index % kPerBlock == 0 && left >= kPerBlock;
      done += direct ? draw_in_place(out + done, index, left)
                     : draw_buffered(out + done * run.stride, run.stride, index, left);
    }
  }

 private:
  static constexpr int64_t kPerBlock = Draw::kPerBlock;
  static constexpr int64_t kBuffered = 256;  // elements

  /// All whole blocks of the `left` elements from `index` on; returns how many elements that were.
  int64_t draw_in_place(Stored* out, uint64_t index, int64_t left) const {
    bulk_(draw_, key_, stream_, index / kPerBlock, left / kPerBlock, out);
    return left / kPerBlock * kPerBlock;
  }

  /// Up to a bufferful of the blocks that hold the elements from `index` on, copied with the stride.
  int64_t draw_buffered(Stored* out, int64_t stride, uint64_t index, int64_t left) const {
    Stored buffer[kBuffered];
    const auto skipped = static_cast<int64_t>(index % kPerBlock);
    const int64_t most = stride == 1 ? kPerBlock : kBuffered;  // contiguous: only until whole blocks begin
    const int64_t count = std::min(left, most - skipped);
    bulk_(draw_, key_, stream_, index / kPerBlock, (skipped + count + kPerBlock - 1) / kPerBlock, buffer);
    for (int64_t i = 0; i < count; ++i) out[i * stride] = buffer[skipped + i];
    return count;
  }

  Draw draw_;
  Key key_;
  uint64_t stream_;
  BulkFunction<Draw, Store> bulk_;
};

}  // namespace

void fill(void* out, ScalarKind kind, const Distribution& distribution, Key key, uint64_t stream,
          const Subarray& subarray) {
  fill(out, kind, distribution, key, stream, subarray, best_instruction_set());
}

void fill(void* out, ScalarKind kind, const Distribution& distribution, Key key, uint64_t stream,
          const Subarray& subarray, InstructionSet instruction_set) {
  subarray.check();
  visit_draw(kind, distribution, [&]<class Draw, class Store>(const Draw& draw, Store) {
    const RunFiller<Draw, Store> filler(draw, key, stream, instruction_set);
    Runs runs(subarray);
    Run run;
    while (runs.next(run)) filler(static_cast<typename Store::Stored*>(out) + run.offset, run);
  });
}

}  // namespace lockstep::rng
