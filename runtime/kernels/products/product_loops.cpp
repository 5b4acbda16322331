#include "runtime/kernels/products/product_loops.h"

#include "runtime/kernels/products/product_by_panels.h"
#include "runtime/kernels/products/shared_factors.h"

namespace lockstep::kernels {
namespace {

constexpr int64_t kPackedLimit = int64_t{4} << 20;      ///< elements of B that are packed at once
constexpr int64_t kColumnLimit = 512, kRowLimit = 224;  ///< of one piece of work
constexpr int64_t kWideColumnLimit = 2048;              ///< where nothing waits: A is packed again for each piece
constexpr int64_t kPackedPanels = 8;                    ///< by one piece of work

template <class T>
const ProductTiles<T>& tiles_for(InstructionSet set) {
#if defined(__x86_64__)
  if (set == InstructionSet::kAvx512) return avx512_tiles<T>();
  if (set == InstructionSet::kAvx2) return avx2_tiles<T>();
#endif
  return baseline_tiles<T>();
}

/// A product of many rows: B is packed ahead, some columns at a time, for all threads.
template <class Input, class T>
class ProductByBlocks {
 public:
  explicit ProductByBlocks(const ProductTask<Input, T>& task) : task_(task), tiles_(task.tiles) {}

  void run(const Workers& workers) {
    const auto& plan = task_.plan;
    const int64_t limit = std::max<int64_t>(kPackedLimit / std::max<int64_t>(plan.positions, 1), 1);
    const int64_t most = plan.groups.size() > 1 ? kColumnLimit : kWideColumnLimit;
    const int64_t columns = divide_up(std::min({limit, most, task_.n}), tiles_.columns) * tiles_.columns;
    for (int64_t first = 0; first < task_.n; first += columns)
      run({first, std::min(columns, task_.n - first)}, workers);
  }

 private:
  void run(const Block& block, const Workers& workers) {
    const T* packed = packed_right(block, workers);
    // Enough pieces for all threads, of about the same size.
    const int64_t panels = divide_up(block.count, tiles_.columns);
    const int64_t tiles = divide_up(task_.m, tiles_.rows), most = std::max<int64_t>(kRowLimit / tiles_.rows, 1);
    const int64_t row_pieces = divide_up(divide_up(tiles, most), workers.count) * workers.count;
    const int64_t tiles_per_piece = divide_up(tiles, std::min(row_pieces, tiles));
    const int64_t pieces = divide_up(tiles, tiles_per_piece);
    const int64_t column_pieces =
        pieces >= workers.count ? 1 : std::min<int64_t>(panels, divide_up(workers.count, pieces));
    const int64_t panels_per_piece = divide_up(panels, column_pieces);
    workers(pieces * column_pieces, [&](int64_t piece) {
      const int64_t row = piece % pieces * tiles_per_piece * tiles_.rows, panel = piece / pieces * panels_per_piece;
      if (panel >= panels) return;
      compute({{row, std::min(tiles_per_piece * tiles_.rows, task_.m - row)},
               block,
               panel,
               std::min(panels, panel + panels_per_piece)},
              packed);
    });
  }

  const T* packed_right(const Block& block, const Workers& workers) const {
    const int64_t size = divide_up(block.count, tiles_.columns) * tiles_.columns * task_.plan.positions;
    const auto [memory, are_packed] = shared_panels(block, size);
    auto* packed = static_cast<T*>(memory ? memory : scratch<T, Purpose::kPackedRight>().reserve(size));
    if (!are_packed) pack_right(block, packed, workers);
    return packed;
  }

  SharedFactors::Panels shared_panels(const Block& block, int64_t size) const {
    const auto& b = task_.b.factor();
    auto* shared = SharedFactors::of(b.data);
    if (!shared) return {};
    return shared->panels_of({b.data, b.row_stride, b.sample_stride, b.element_stride, task_.b.sample_length(),
                              block.first, block.count, task_.plan.positions, &tiles_},
                             size * static_cast<int64_t>(sizeof(T)));
  }

  void pack_right(const Block& block, T* packed, const Workers& workers) const {
    const int64_t panels = divide_up(block.count, tiles_.columns), size = tiles_.columns * task_.plan.positions;
    workers(divide_up(panels, kPackedPanels), [&](int64_t piece) {
      const int64_t panel = piece * kPackedPanels, column = block.first + panel * tiles_.columns;
      const int64_t end = std::min(column + kPackedPanels * tiles_.columns, block.first + block.count);
      task_.b.pack({column, end - column}, {0, task_.plan.positions}, packed + panel * size, tiles_.columns, size);
    });
  }

  /// Rows times panels [first_panel, end_panel) of a block of columns.
  struct Piece {
    Block rows, columns;
    int64_t first_panel, end_panel;
  };

  int64_t tile_count(const Piece& piece) const {
    return divide_up(piece.rows.count, tiles_.rows) * (piece.end_panel - piece.first_panel);
  }

  void compute(const Piece& piece, const T* packed) const {
    const auto& plan = task_.plan;
    const Block& rows = piece.rows;
    T* left = scratch<T, Purpose::kPackedLeft>().reserve(divide_up(rows.count, tiles_.rows) *
                                                         task_.left_stride(plan.longest_group));
    task_.reserve_waiting(tile_count(piece));
    const int64_t whole = task_.rows_in_place(rows.count);
    for (const LeafGroup& group : plan.groups) {
      task_.a.pack({rows.first + whole, rows.count - whole}, {group.position, group.length}, left, tiles_.packed_rows,
                   task_.left_stride(group.length));
      add_group(piece, group, whole, left, packed);
    }
  }

  /// A's panel stays in the cache, and results are written along their rows.
  void add_group(const Piece& piece, const LeafGroup& group, int64_t whole, const T* left, const T* right) const {
    int64_t tile = 0;
    for (int64_t row = 0; row < piece.rows.count; row += tiles_.rows)
      for (int64_t panel = piece.first_panel; panel < piece.end_panel; ++panel, ++tile) {
        auto work = task_.tile_work(group, piece.rows.first + row, piece.columns.first + panel * tiles_.columns,
                                    tile_count(piece));
        if (row < whole)
          task_.read_in_place(work, piece.rows.first + row, group.position);
        else
          work.a = left + (row - whole) / tiles_.rows * task_.left_stride(group.length);
        work.b = right + (panel * task_.plan.positions + group.position) * tiles_.columns;
        work.waiting += tile * task_.tile_size();
        tiles_.compute(work);
      }
  }

  const ProductTask<Input, T>& task_;
  const ProductTiles<T>& tiles_;
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
void product_along(int64_t m, int64_t n, const Factor<Input>& a, const Factor<Input>& b, const ProductPlan& plan,
                   const ProductOutput<T>& out, const Workers& workers, InstructionSet set) {
  product_in_order<Input, T>(m, n, a, b, {plan, plan.positions}, out, workers, tiles_for<T>(set));
}

template <class Input, class T>
void product_in_order(int64_t m, int64_t n, const Factor<Input>& a, const Factor<Input>& b, const SummationOrder& order,
                      const ProductOutput<T>& out, const Workers& workers, const ProductTiles<T>& tiles) {
  const ProductTask<Input, T> task(m, n, a, b, order, out, tiles);
  // Rows that are read where they are stay in the first cache better than they come from the second.
  const bool few = m <= ProductByPanels<Input, T>::kRowLimit && task.plan.groups.size() > 1 && !task.in_place;
  if (few && !SharedFactors::of(b.data)) return ProductByPanels<Input, T>(task).run(workers);
  ProductByBlocks<Input, T>(task).run(workers);
}

#define LOCKSTEP_INSTANTIATE(Input, T)                                                                                \
  template void product(int64_t, int64_t, const Factor<Input>&, const Factor<Input>&, const Contraction&,             \
                        const ProductOutput<T>&, const Workers&, InstructionSet);                                     \
  template void product_along(int64_t, int64_t, const Factor<Input>&, const Factor<Input>&, const ProductPlan&,       \
                              const ProductOutput<T>&, const Workers&, InstructionSet);                               \
  template void product_in_order(int64_t, int64_t, const Factor<Input>&, const Factor<Input>&, const SummationOrder&, \
                                 const ProductOutput<T>&, const Workers&, const ProductTiles<T>&)
LOCKSTEP_INSTANTIATE(float, float);
LOCKSTEP_INSTANTIATE(Bfloat16, float);
LOCKSTEP_INSTANTIATE(double, double);
#undef LOCKSTEP_INSTANTIATE

}  // namespace lockstep::kernels
