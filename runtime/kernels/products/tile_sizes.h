#pragma once
#include "runtime/kernels/products/product_loops.h"

namespace lockstep::kernels {

/// One tile of the result over one group of leaves.
///
/// `a` holds tile.packed_rows values per position, or lies as it is: then it has `a_row`, the distance of its rows,
/// whose positions are neighbours, and all rows of a tile are there. `b` holds tile.columns per position. Results of
/// groups that wait lie in `waiting`, one tile per depth, `waiting_stride` apart; leaves of this group wait in `stack`.
template <class T>
struct TileWork {
  const T *a, *b;
  int64_t a_row;  ///< 0: packed
  const LeafStep* leaves;
  int64_t leaf_count;
  T* stack;
  T* waiting;
  int64_t waiting_stride;
  int depth, joins;
  T* out;  ///< where a node ends, else null
  int64_t out_stride;
  int rows, columns;
};

/// Copies `count` positions of the rows of a factor into panels of `width` rows: row r of panel p goes to
/// to[p * panel_stride + position * stride + r]. In the last panel, rows that are not there are 0.
template <class Input, class T>
struct PackWork {
  const Input* from;
  int64_t row_stride, element_stride;
  int64_t rows, count;
  T* to;
  int64_t stride, panel_stride;
};

/// Packs the left factor into panels of `rows`, the right one into panels of `columns`.
template <class Input, class T>
struct Packers {
  void (*left)(const PackWork<Input, T>& work);
  void (*right)(const PackWork<Input, T>& work);
};

/// What one instruction set contributes.
template <class T>
struct ProductTiles {
  int rows, packed_rows, columns;
  void (*compute)(const TileWork<T>& work);
  Packers<T, T> pack;
  Packers<Bfloat16, T> pack_narrow;  ///< none for double
};

template <class T>
const ProductTiles<T>& baseline_tiles();
template <class T>
const ProductTiles<T>& avx2_tiles();
template <class T>
const ProductTiles<T>& avx512_tiles();

/// The order of a product's sums: its plan, and how many summands a sample has here.
struct SummationOrder {
  ProductPlan plan;
  int64_t sample_length;
};

/// product() with its parts given: tests put wrong ones in.
template <class Input, class T>
void product_in_order(int64_t m, int64_t n, const Factor<Input>& a, const Factor<Input>& b, const SummationOrder& order,
                      const ProductOutput<T>& out, const Workers& workers, const ProductTiles<T>& tiles);

}  // namespace lockstep::kernels
