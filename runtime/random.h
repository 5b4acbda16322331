#pragma once
#include <ATen/core/Tensor.h>

#include "rng/distribution.h"
#include "runtime/spec.h"

namespace lockstep {

/// The seed of random ops (dropout) on this thread, for the length of a scope.
class RandomScope {
 public:
  explicit RandomScope(uint64_t seed);
  ~RandomScope();
  RandomScope(const RandomScope&) = delete;
  RandomScope& operator=(const RandomScope&) = delete;

  /// Throws BadInput outside of every scope.
  static uint64_t seed();

 private:
  struct State {
    bool open = false;
    uint64_t seed = 0;
  };
  static thread_local State current_;
  State previous_;
};

/// Declares that the first dimension of activations is the batch, and that its row 0 is row `first_row` of the global
/// batch: a microbatch draws what the whole batch would draw there. Of its `rows` rows each is one sample: sums over
/// the batch are trees over samples (canonical numerics); 0: not known.
class BatchScope {
 public:
  explicit BatchScope(int64_t first_row, int64_t rows = 0);
  ~BatchScope();
  BatchScope(const BatchScope&) = delete;
  BatchScope& operator=(const BatchScope&) = delete;

  /// 0 outside of every scope: weights never shift.
  static int64_t first_row();
  static int64_t rows();

 private:
  int64_t previous_first_row_, previous_rows_;
};

/// A tensor of random values that are the same on every mesh and layout: element i of the global tensor is a function
/// of (seed, stream, i) alone. Values are drawn in the declared dtype.
at::Tensor draw(const Layout& layout, c10::IntArrayRef sizes, c10::ScalarType dtype,
                const rng::Distribution& distribution, uint64_t seed, uint64_t stream);

/// What local rank `index` holds of the tensor that draw() makes, in the declared dtype, as a plain tensor. Indices are
/// shifted by `first_row` rows of the first dimension.
at::Tensor draw_local(const TensorSpec& spec, size_t index, const rng::Distribution& distribution, uint64_t seed,
                      uint64_t stream, int64_t first_row = 0);

}  // namespace lockstep
