#include "runtime/kernels/product_loops.h"

#include <algorithm>
#include <type_traits>

#include "runtime/kernels/product_tiles.h"
#include "runtime/kernels/scratch.h"

namespace lockstep::kernels {
namespace {

constexpr int64_t kGroupLimit = 512;                    ///< positions whose panels share the caches
constexpr int64_t kPackedLimit = int64_t{4} << 20;      ///< elements of B that are packed at once
constexpr int64_t kColumnLimit = 512, kRowLimit = 224;  ///< of one piece of work

template <class T>
const ProductTiles<T>& tiles_for(InstructionSet set) {
#if defined(__x86_64__)
  if (set == InstructionSet::kAvx512) return avx512_tiles<T>();
  if (set == InstructionSet::kAvx2) return avx2_tiles<T>();
#endif
  return baseline_tiles<T>();
}

template <class Input, class T>
Packers<Input, T> packers(const ProductTiles<T>& tiles) {
  if constexpr (std::is_same_v<Input, T>) {
    return tiles.pack;
  } else {
    return tiles.pack_narrow;
  }
}

int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// A run of columns, in whole panels.
struct Block {
  int64_t first, count;
};

/// One call of product.
template <class Input, class T>
class Product {
 public:
  Product(int64_t m, int64_t n, const Factor<Input>& a, const Factor<Input>& b, const SummationOrder& order,
          const ProductOutput<T>& out, const ProductTiles<T>& tiles)
      : m_(m),
        n_(n),
        a_(a),
        b_(b),
        out_(out),
        plan_(order.plan),
        tiles_(tiles),
        pack_(packers<Input>(tiles_)),
        sample_length_(order.sample_length) {
    // Samples that follow one another in both factors are one long one, as far as packing goes.
    regular_a_ = a_.sample_stride == sample_length_ * a_.element_stride;
    regular_b_ = b_.sample_stride == sample_length_ * b_.element_stride;
  }

  void run(const Workers& workers) {
    const int64_t limit = std::max<int64_t>(kPackedLimit / std::max<int64_t>(plan_.positions, 1), 1);
    const int64_t columns = divide_up(std::min({limit, kColumnLimit, n_}), tiles_.columns) * tiles_.columns;
    for (int64_t first = 0; first < n_; first += columns) run({first, std::min(columns, n_ - first)}, workers);
  }

 private:
  void run(const Block& block, const Workers& workers) {
    const int64_t panels = divide_up(block.count, tiles_.columns);
    T* packed = scratch<T, Purpose::kPackedRight>().reserve(panels * tiles_.columns * plan_.positions);
    workers(divide_up(panels, kPackedPanels), [&](int64_t piece) {
      const int64_t panel = piece * kPackedPanels, column = block.first + panel * tiles_.columns;
      const int64_t end = std::min(column + kPackedPanels * tiles_.columns, block.first + block.count);
      pack(pack_.right, b_, regular_b_, {column, end - column}, {0, plan_.positions},
           packed + panel * tiles_.columns * plan_.positions, tiles_.columns, tiles_.columns * plan_.positions);
    });
    // Enough pieces for all threads, of about the same size.
    const int64_t tiles = divide_up(m_, tiles_.rows), most = std::max<int64_t>(kRowLimit / tiles_.rows, 1);
    const int64_t row_pieces = divide_up(divide_up(tiles, most), workers.count) * workers.count;
    const int64_t tiles_per_piece = divide_up(tiles, std::min(row_pieces, tiles));
    const int64_t pieces = divide_up(tiles, tiles_per_piece);
    const int64_t column_pieces =
        pieces >= workers.count ? 1 : std::min<int64_t>(panels, divide_up(workers.count, pieces));
    const int64_t panels_per_piece = divide_up(panels, column_pieces);
    workers(pieces * column_pieces, [&](int64_t piece) {
      const int64_t row = piece % pieces * tiles_per_piece * tiles_.rows, panel = piece / pieces * panels_per_piece;
      if (panel >= panels) return;
      compute({row, std::min(tiles_per_piece * tiles_.rows, m_ - row)}, block, panel,
              std::min(panels, panel + panels_per_piece), packed);
    });
  }

  struct Span {
    int64_t position, length;
  };

  /// Rows of a factor into panels, whatever samples the positions belong to.
  void pack(void (*pack_run)(const PackWork<Input, T>&), const Factor<Input>& factor, bool regular, const Block& rows,
            const Span& span, T* to, int64_t stride, int64_t panel_stride) const {
    const int64_t run = regular ? std::max<int64_t>(span.position + span.length, 1) : sample_length_;
    for (int64_t done = 0; done < span.length;) {
      const int64_t sample = (span.position + done) / run, element = (span.position + done) % run;
      const int64_t length = std::min({run - element, span.length - done, kPackedRun});
      const Input* from = factor.data + sample * factor.sample_stride + element * factor.element_stride;
      pack_run({from + rows.first * factor.row_stride, factor.row_stride, factor.element_stride, rows.count, length,
                to + done * stride, stride, panel_stride});
      done += length;
    }
  }

  /// Rows times panels [first_panel, end_panel) of a block.
  void compute(const Block& rows, const Block& columns, int64_t first_panel, int64_t end_panel, const T* packed) const {
    const int64_t size = tiles_.rows * tiles_.columns;
    const int64_t tile_count = divide_up(rows.count, tiles_.rows) * (end_panel - first_panel);
    const int64_t a_size = divide_up(rows.count, tiles_.rows) * tiles_.packed_rows * plan_.longest_group;
    T* packed_a = scratch<T, Purpose::kPackedLeft>().reserve(a_size);
    T* waiting = scratch<T, Purpose::kWaiting>().reserve(plan_.deepest * tile_count * size);
    T* stack = scratch<T, Purpose::kStack>().reserve(std::max(plan_.deepest_group, 1) * size);
    for (const LeafGroup& group : plan_.groups) {
      pack(pack_.left, a_, regular_a_, rows, {group.position, group.length}, packed_a, tiles_.packed_rows,
           tiles_.packed_rows * group.length);
      int64_t tile = 0;
      for (int64_t panel = first_panel; panel < end_panel; ++panel) {
        const int64_t column = panel * tiles_.columns;
        for (int64_t row = 0; row < rows.count; row += tiles_.rows, ++tile) {
          TileWork<T> work;
          work.a = packed_a + row / tiles_.rows * tiles_.packed_rows * group.length;
          work.b = packed + panel * tiles_.columns * plan_.positions + group.position * tiles_.columns;
          work.leaves = plan_.leaves.data() + group.first_leaf;
          work.leaf_count = group.leaf_count;
          work.stack = stack;
          work.waiting = waiting + tile * size;
          work.waiting_stride = tile_count * size;
          work.depth = group.depth;
          work.joins = group.joins;
          work.out = group.ends_node ? out_.data + group.node * out_.node_stride +
                                           (rows.first + row) * out_.row_stride + columns.first + column
                                     : nullptr;
          work.out_stride = out_.row_stride;
          work.rows = static_cast<int>(std::min<int64_t>(tiles_.rows, rows.count - row));
          work.columns = static_cast<int>(std::min<int64_t>(tiles_.columns, columns.count - column));
          tiles_.compute(work);
        }
      }
    }
  }

  static constexpr int64_t kPackedRun = 128;   ///< positions, so that what is written stays in the cache
  static constexpr int64_t kPackedPanels = 8;  ///< by one piece of work

  int64_t m_, n_;
  Factor<Input> a_, b_;
  ProductOutput<T> out_;
  const ProductPlan& plan_;
  const ProductTiles<T>& tiles_;
  Packers<Input, T> pack_;
  int64_t sample_length_;
  bool regular_a_, regular_b_;
};

}  // namespace

void Workers::operator()(int64_t items, const std::function<void(int64_t)>& work) const {
  if (run != nullptr && count > 1 && items > 1) return run(items, work);
  for (int64_t item = 0; item < items; ++item) work(item);
}

template <class Input, class T>
void product(int64_t m, int64_t n, const Factor<Input>& a, const Factor<Input>& b, const Contraction& contraction,
             const ProductOutput<T>& out, const Workers& workers, InstructionSet set) {
  if (m == 0 || n == 0) return;
  const SummationOrder order{plan_product(contraction, kGroupLimit), contraction.elements};
  product_in_order<Input, T>(m, n, a, b, order, out, workers, tiles_for<T>(set));
}

template <class Input, class T>
void product_in_order(int64_t m, int64_t n, const Factor<Input>& a, const Factor<Input>& b, const SummationOrder& order,
                      const ProductOutput<T>& out, const Workers& workers, const ProductTiles<T>& tiles) {
  Product<Input, T>(m, n, a, b, order, out, tiles).run(workers);
}

#define LOCKSTEP_INSTANTIATE(Input, T)                                                                                \
  template void product(int64_t, int64_t, const Factor<Input>&, const Factor<Input>&, const Contraction&,             \
                        const ProductOutput<T>&, const Workers&, InstructionSet);                                     \
  template void product_in_order(int64_t, int64_t, const Factor<Input>&, const Factor<Input>&, const SummationOrder&, \
                                 const ProductOutput<T>&, const Workers&, const ProductTiles<T>&)
LOCKSTEP_INSTANTIATE(float, float);
LOCKSTEP_INSTANTIATE(Bfloat16, float);
LOCKSTEP_INSTANTIATE(double, double);
#undef LOCKSTEP_INSTANTIATE

}  // namespace lockstep::kernels
