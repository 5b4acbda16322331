#pragma once
#include <numeric>
#include <type_traits>

#include "runtime/kernels/products/factor_reader.h"
#include "runtime/kernels/simd/scratch.h"

namespace lockstep::kernels {

inline int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// One call of product(): what its loops share.
template <class Input, class T>
struct ProductTask {
  ProductTask(int64_t rows, int64_t columns, const Factor<Input>& left, const Factor<Input>& right,
              const SummationOrder& order, const ProductOutput<T>& output, const ProductTiles<T>& tile_sizes)
      : m(rows),
        n(columns),
        a(left, order.sample_length, packers(tile_sizes).left),
        b(right, order.sample_length, packers(tile_sizes).right),
        out(output),
        plan(order.plan),
        tiles(tile_sizes),
        in_place(left_in_place()) {}

  /// Of `count` rows, those that whole tiles read where they are.
  int64_t rows_in_place(int64_t count) const { return in_place ? count / tiles.rows * tiles.rows : 0; }

  /// From one panel of A to the next, which is not in the same sets of the caches.
  int64_t left_stride(int64_t positions) const { return tiles.packed_rows * positions + 16; }

  /// One tile of a group without its factors, and where the first of `tile_count` tiles waits.
  TileWork<T> tile_work(const LeafGroup& group, int64_t row, int64_t column, int64_t tile_count) const {
    TileWork<T> work{};
    work.leaves = plan.leaves.data() + group.first_leaf;
    work.leaf_count = group.leaf_count;
    work.stack = scratch<T, Purpose::kStack>().reserve(0);
    work.waiting = scratch<T, Purpose::kWaiting>().reserve(0);
    work.waiting_stride = tile_count * tile_size();
    work.depth = group.depth;
    work.joins = group.joins;
    if (group.ends_node) work.out = out.data + group.node * out.node_stride + row * out.row_stride + column;
    work.out_stride = out.row_stride;
    work.rows = static_cast<int>(std::min<int64_t>(tiles.rows, m - row));
    work.columns = static_cast<int>(std::min<int64_t>(tiles.columns, n - column));
    return work;
  }

  void read_in_place(TileWork<T>& work, int64_t row, int64_t position) const {
    if constexpr (std::is_same_v<Input, T>) {
      work.a = a.factor().data + row * a.factor().row_stride + position;
      work.a_row = a.factor().row_stride;
    }
  }

  /// To be called by each thread before its first tile.
  void reserve_waiting(int64_t tile_count) const {
    scratch<T, Purpose::kWaiting>().reserve(plan.deepest * tile_count * tile_size());
    scratch<T, Purpose::kStack>().reserve(std::max(plan.deepest_group, 1) * tile_size());
  }

  int64_t tile_size() const { return int64_t{tiles.rows} * tiles.columns; }

  int64_t m, n;
  FactorReader<Input, T> a, b;
  ProductOutput<T> out;
  const ProductPlan& plan;
  const ProductTiles<T>& tiles;
  bool in_place;

 private:
  static Packers<Input, T> packers(const ProductTiles<T>& tiles) {
    if constexpr (std::is_same_v<Input, T>) {
      return tiles.pack;
    } else {
      return tiles.pack_narrow;
    }
  }

  /// Whether whole tiles read A where it is: in T, positions side by side, and the lines of a tile's rows not all in
  /// the same few sets of the first cache (64 sets of 8 lines in most).
  bool left_in_place() const {
    const auto& factor = a.factor();
    if (!std::is_same_v<Input, T> || factor.element_stride != 1 || !a.is_even(plan.positions)) return false;
    constexpr int64_t kBytes = 4096, kLeastSets = 4;
    const auto distance = factor.row_stride * static_cast<int64_t>(sizeof(T));
    return distance > 0 && kBytes / std::gcd(kBytes, distance) >= kLeastSets;
  }
};

}  // namespace lockstep::kernels
