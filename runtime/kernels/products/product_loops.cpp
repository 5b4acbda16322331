#include "runtime/kernels/products/product_loops.h"

#include <algorithm>
#include <numeric>
#include <type_traits>

#include "runtime/kernels/products/tile_sizes.h"
#include "runtime/kernels/simd/scratch.h"

namespace lockstep::kernels {
namespace {

constexpr int64_t kGroupLimit = 512;                    ///< positions whose panels share the caches
constexpr int64_t kPackedLimit = int64_t{4} << 20;      ///< elements of B that are packed at once
constexpr int64_t kColumnLimit = 512, kRowLimit = 224;  ///< of one piece of work
constexpr int64_t kWideColumnLimit = 2048;              ///< where nothing waits: A is packed again for each piece
constexpr int64_t kFewRows = 512;                       ///< too few for packing all of B ahead

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
    in_place_ = left_in_place();
  }

  void run(const Workers& workers) {
    if (plan_.groups.size() > 1 && m_ <= kFewRows) return run_by_groups(workers);
    const int64_t limit = std::max<int64_t>(kPackedLimit / std::max<int64_t>(plan_.positions, 1), 1);
    const int64_t most = plan_.groups.size() > 1 ? kColumnLimit : kWideColumnLimit;
    const int64_t columns = divide_up(std::min({limit, most, n_}), tiles_.columns) * tiles_.columns;
    for (int64_t first = 0; first < n_; first += columns) run({first, std::min(columns, n_ - first)}, workers);
  }

 private:
  /// Whether whole tiles read A where it is: in T, positions side by side, and the lines of a tile's rows not all in
  /// the same few sets of the first cache (64 sets of 8 lines in most).
  bool left_in_place() const {
    if (!std::is_same_v<Input, T> || a_.element_stride != 1 || !(regular_a_ || plan_.positions <= sample_length_))
      return false;
    constexpr int64_t kBytes = 4096, kLeastSets = 4;
    const auto distance = a_.row_stride * static_cast<int64_t>(sizeof(T));
    return distance > 0 && kBytes / std::gcd(kBytes, distance) >= kLeastSets;
  }

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
      compute({{row, std::min(tiles_per_piece * tiles_.rows, m_ - row)},
               block,
               panel,
               std::min(panels, panel + panels_per_piece)},
              packed);
    });
  }

  /// Each piece packs its own panels of B, one group at a time: they are read while they are in the cache.
  void run_by_groups(const Workers& workers) {
    const int64_t down = m_ < n_ ? 1 : workers.count, across = m_ < n_ ? workers.count : 1;
    const int64_t rows = divide_up(divide_up(m_, down), tiles_.rows) * tiles_.rows;
    const int64_t columns = divide_up(std::min(divide_up(n_, across), kColumnLimit), tiles_.columns) * tiles_.columns;
    const int64_t row_pieces = divide_up(m_, rows);
    workers(row_pieces * divide_up(n_, columns), [&](int64_t piece) {
      const int64_t row = piece % row_pieces * rows, column = piece / row_pieces * columns;
      const Block block{column, std::min(columns, n_ - column)};
      compute({{row, std::min(rows, m_ - row)}, block, 0, divide_up(block.count, tiles_.columns)}, nullptr);
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

  /// All positions of the columns of a block, or those of one group.
  struct PackedRight {
    const T* data;
    int64_t position, length;

    const T* panel(int64_t panel, int64_t at, int64_t width) const {
      return data + (panel * length + at - position) * width;
    }
  };

  /// Panels [0, panels) of a block for one group.
  PackedRight pack_group(const LeafGroup& group, const Block& columns) const {
    const int64_t panels = divide_up(columns.count, tiles_.columns);
    T* packed = scratch<T, Purpose::kPackedRight>().reserve(panels * tiles_.columns * plan_.longest_group);
    pack(pack_.right, b_, regular_b_, columns, {group.position, group.length}, packed, tiles_.columns,
         tiles_.columns * group.length);
    return {packed, group.position, group.length};
  }

  /// Rows times panels [first_panel, end_panel) of a block of columns.
  struct Piece {
    Block rows, columns;
    int64_t first_panel, end_panel;

    int64_t tiles(const ProductTiles<T>& size) const {
      return divide_up(rows.count, size.rows) * (end_panel - first_panel);
    }
  };

  /// B is packed or, without `packed`, is to be.
  void compute(const Piece& piece, const T* packed) const {
    const Block& rows = piece.rows;
    const int64_t size = tiles_.rows * tiles_.columns;
    const int64_t a_size = divide_up(rows.count, tiles_.rows) * (tiles_.packed_rows * plan_.longest_group + 16);
    T* packed_a = scratch<T, Purpose::kPackedLeft>().reserve(a_size);
    scratch<T, Purpose::kWaiting>().reserve(plan_.deepest * piece.tiles(tiles_) * size);
    scratch<T, Purpose::kStack>().reserve(std::max(plan_.deepest_group, 1) * size);
    const int64_t whole = in_place_ ? rows.count / tiles_.rows * tiles_.rows : 0;  // rows that are read where they are
    for (const LeafGroup& group : plan_.groups) {
      pack(pack_.left, a_, regular_a_, {rows.first + whole, rows.count - whole}, {group.position, group.length},
           packed_a, tiles_.packed_rows, tiles_.packed_rows * group.length + 16);
      const bool is_packed = packed != nullptr;
      add_group(piece, group, whole, packed_a,
                is_packed ? PackedRight{packed, 0, plan_.positions} : pack_group(group, piece.columns));
    }
  }

  /// A's panel stays in the cache, and results are written along their rows.
  void add_group(const Piece& piece, const LeafGroup& group, int64_t whole, const T* packed_a,
                 const PackedRight& packed_b) const {
    int64_t tile = 0;
    for (int64_t row = 0; row < piece.rows.count; row += tiles_.rows)
      for (int64_t panel = piece.first_panel; panel < piece.end_panel; ++panel, ++tile) {
        TileWork<T> work = work_of(piece, group, row, panel * tiles_.columns);
        if (row < whole)
          read_in_place(work, piece.rows.first + row, group.position);
        else
          work.a = packed_a + (row - whole) / tiles_.rows * (tiles_.packed_rows * group.length + 16);
        work.b = packed_b.panel(panel, group.position, tiles_.columns);
        work.waiting += tile * tiles_.rows * tiles_.columns;
        tiles_.compute(work);
      }
  }

  void read_in_place(TileWork<T>& work, int64_t row, int64_t position) const {
    if constexpr (std::is_same_v<Input, T>) {
      work.a = a_.data + row * a_.row_stride + position;
      work.a_row = a_.row_stride;
    }
  }

  /// Without factors; what waits for the first tile.
  TileWork<T> work_of(const Piece& piece, const LeafGroup& group, int64_t row, int64_t column) const {
    const int64_t size = tiles_.rows * tiles_.columns;
    TileWork<T> work{};
    work.leaves = plan_.leaves.data() + group.first_leaf;
    work.leaf_count = group.leaf_count;
    work.stack = scratch<T, Purpose::kStack>().reserve(0);
    work.waiting = scratch<T, Purpose::kWaiting>().reserve(0);
    work.waiting_stride = piece.tiles(tiles_) * size;
    work.depth = group.depth;
    work.joins = group.joins;
    if (group.ends_node)
      work.out = out_.data + group.node * out_.node_stride + (piece.rows.first + row) * out_.row_stride +
                 piece.columns.first + column;
    work.out_stride = out_.row_stride;
    work.rows = static_cast<int>(std::min<int64_t>(tiles_.rows, piece.rows.count - row));
    work.columns = static_cast<int>(std::min<int64_t>(tiles_.columns, piece.columns.count - column));
    return work;
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
  bool regular_a_, regular_b_, in_place_;
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
