#pragma once
#include "runtime/kernels/products/product_task.h"

namespace lockstep::kernels {

/// A product of few rows: each panel of B meets all of A, which fits into the caches. It is packed just before, and the
/// lines of the next one are asked for during the computation.
template <class Input, class T>
class ProductByPanels {
 public:
  static constexpr int64_t kRowLimit = 288;  ///< of which a group of A fits into the second cache

  explicit ProductByPanels(const ProductTask<Input, T>& task)
      : task_(task),
        tiles_(task.tiles),
        whole_(task.rows_in_place(task.m)),
        packs_ahead_((task.m - whole_) * task.plan.positions <= kPackedLimit) {}

  void run(const Workers& workers) {
    if (packs_ahead_) pack_ahead(workers);
    const int64_t tiles = divide_up(task_.m, tiles_.rows), panels = divide_up(task_.n, tiles_.columns);
    const int64_t down = rows_apart(tiles, panels, workers.count), across = workers.count / down;
    const int64_t tall = divide_up(tiles, down), wide = divide_up(panels, across);
    workers(down * across, [&](int64_t piece) {
      const int64_t tile = piece % down * tall, panel = piece / down * wide;
      compute({tile, std::min(tall, tiles - tile)}, {panel, std::min(wide, panels - panel)});
    });
  }

 private:
  static constexpr int64_t kPackedLimit = int64_t{4} << 20;  ///< elements of A that are packed at once
  static constexpr int64_t kPackedTiles = 8;                 ///< by one piece of work
  static constexpr int64_t kWaitingPanels = 16;              ///< whose results wait for later groups

  /// How many threads share out the rows, the others the columns: so that the largest piece is the smallest.
  static int64_t rows_apart(int64_t tiles, int64_t panels, int64_t threads) {
    int64_t best = 1;
    const auto most = [&](int64_t down) { return divide_up(tiles, down) * divide_up(panels, threads / down); };
    for (int64_t down = 2; down <= threads; ++down)
      if (threads % down == 0 && most(down) < most(best)) best = down;
    return best;
  }

  /// All rows that no tile reads where they are, for all threads.
  void pack_ahead(const Workers& workers) {
    const int64_t rows = kPackedTiles * tiles_.rows, stride = task_.left_stride(task_.plan.positions);
    ahead_ = scratch<T, Purpose::kPackedLeft>().reserve(divide_up(task_.m - whole_, tiles_.rows) * stride);
    workers(divide_up(task_.m - whole_, rows), [&](int64_t piece) {
      const int64_t row = whole_ + piece * rows;
      task_.a.pack({row, std::min(rows, task_.m - row)}, {0, task_.plan.positions},
                   ahead_ + piece * kPackedTiles * stride, tiles_.packed_rows, stride);
    });
  }

  /// Tiles of rows times panels of columns.
  void compute(const Block& tiles, const Block& panels) const {
    if (tiles.count <= 0 || panels.count <= 0) return;
    const int64_t most = task_.plan.groups.size() > 1 ? kWaitingPanels : panels.count;
    task_.reserve_waiting(tiles.count * std::min(most, panels.count));
    for (int64_t first = 0; first < panels.count; first += most)
      add_groups(tiles, {panels.first + first, std::min(most, panels.count - first)});
  }

  void add_groups(const Block& tiles, const Block& panels) const {
    const auto& groups = task_.plan.groups;
    for (std::size_t g = 0; g < groups.size(); ++g) {
      const T* left = packs_ahead_ ? nullptr : pack_group(tiles, groups[g]);
      for (int64_t panel = 0; panel < panels.count; ++panel) {
        const bool is_last = panel + 1 == panels.count;
        const LeafGroup& next = groups[is_last && g + 1 < groups.size() ? g + 1 : g];
        const int64_t ahead = is_last && g + 1 < groups.size() ? panels.first : panels.first + panel + 1;
        add_panel({tiles, panels, panel, groups[g], left}, ahead, next);
      }
    }
  }

  /// Rows of A for one group, where all of it would be too much.
  const T* pack_group(const Block& tiles, const LeafGroup& group) const {
    const int64_t first = std::max(tiles.first * tiles_.rows, whole_);
    const int64_t end = std::min((tiles.first + tiles.count) * tiles_.rows, task_.m);
    T* packed = scratch<T, Purpose::kPackedLeft>().reserve(tiles.count * task_.left_stride(task_.plan.longest_group));
    if (first < end)
      task_.a.pack({first, end - first}, {group.position, group.length}, packed, tiles_.packed_rows,
                   task_.left_stride(group.length));
    return packed;
  }

  /// One panel of a run of panels.
  struct PanelWork {
    Block tiles, panels;
    int64_t panel;
    const LeafGroup& group;
    const T* left;  ///< packed for this group, the first tile that is; null: all was packed ahead
  };

  Block columns_of(int64_t panel) const {
    const int64_t column = panel * tiles_.columns;
    return {column, std::clamp<int64_t>(task_.n - column, 0, tiles_.columns)};
  }

  void add_panel(const PanelWork& work, int64_t ahead, const LeafGroup& next) const {
    const Span span{work.group.position, work.group.length};
    T* packed = scratch<T, Purpose::kPackedRight>().reserve(tiles_.columns * task_.plan.longest_group);
    task_.b.pack(columns_of(work.panels.first + work.panel), span, packed, tiles_.columns,
                 tiles_.columns * span.length);
    for (int64_t tile = 0; tile < work.tiles.count; ++tile) {
      task_.b.prefetch(columns_of(ahead), {next.position, next.length}, tile, work.tiles.count);
      const int64_t row = (work.tiles.first + tile) * tiles_.rows;
      const int64_t column = columns_of(work.panels.first + work.panel).first;
      auto one = task_.tile_work(work.group, row, column, work.tiles.count * work.panels.count);
      set_left(one, work, row);
      one.b = packed;
      one.waiting += (tile * work.panels.count + work.panel) * task_.tile_size();
      tiles_.compute(one);
    }
  }

  void set_left(TileWork<T>& tile, const PanelWork& work, int64_t row) const {
    if (row < whole_) return task_.read_in_place(tile, row, work.group.position);
    if (work.left == nullptr) {
      tile.a = ahead_ + (row - whole_) / tiles_.rows * task_.left_stride(task_.plan.positions) +
               work.group.position * tiles_.packed_rows;
      return;
    }
    const int64_t first = std::max(work.tiles.first * tiles_.rows, whole_);
    tile.a = work.left + (row - first) / tiles_.rows * task_.left_stride(work.group.length);
  }

  const ProductTask<Input, T>& task_;
  const ProductTiles<T>& tiles_;
  int64_t whole_;  ///< rows that are read where they are
  bool packs_ahead_;
  T* ahead_ = nullptr;
};

}  // namespace lockstep::kernels
