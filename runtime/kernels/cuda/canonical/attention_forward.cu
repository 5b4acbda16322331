#include "runtime/kernels/cuda/canonical/attention_rows.h"

namespace lockstep::cuda::canonical {
namespace {

constexpr int kWarps = static_cast<int>(kThreads / kWarp), kBlock = static_cast<int>(kernels::kKeyBlock);

template <class Input>
struct Forward {
  kernels::AttentionForward<Input, float> work;
  Scales scales;

  std::array<const void*, 11> memory() const {
    return {work.query.data,
            work.key.data,
            work.value.data,
            work.output.data,
            work.log_sum.data,
            work.before.sums.data,
            work.before.weights.data,
            work.after.sums.data,
            work.after.weights.data,
            work.shape.places,
            work.shape.dropout.draws.data};
  }
};

/// Of a block of keys, in shared memory: scores, which become weights; and weights of what is not dropped.
struct BlockWeights {
  float all[kBlock], kept[kBlock];
};

__device__ float warp_maximum(float value) {
  for (int bits = static_cast<int>(kWarp) / 2; bits > 0; bits /= 2) {
    const float other = __shfl_xor_sync(kWholeWarp, value, bits, static_cast<int>(kWarp));
    value = other > value ? other : value;
  }
  return value;
}

/// What a warp has of its query row. A thread has a lane of the denominator, in both halves of the warp the same ones.
template <class Input>
class QueryRow {
 public:
  __device__ QueryRow(const Forward<Input>& call, int64_t batch, int64_t head, int64_t row, BlockWeights& weights)
      : call_(call),
        shape_(call.work.shape),
        batch_(batch),
        head_(head),
        row_(row),
        weights_(weights),
        first_(shape_.first_key_of(batch, row)),
        end_(shape_.keys_of(row)) {
    any_ = end_ > first_;
    go_on();
  }

  __device__ void run() {
    for (int64_t block = first_ / kBlock * kBlock; block < end_; block += kBlock) add_block(block);
    call_.work.after.weights.data != nullptr ? keep() : finish();
  }

 private:
  /// From what keys before have left; where it is none that this code leaves, the row is NaN.
  __device__ void go_on() {
    if (call_.work.before.weights.data == nullptr) return;
    const HeadRow weights(call_.work.before.weights, batch_, head_, row_),
        sums(call_.work.before.sums, batch_, head_, row_);
    if (!(weights[kernels::kAnyOfState] > 0)) return;
    any_ = true;
    const float highest = weights[kernels::kHighestOfState];
    const bool is_lost = highest != highest;
    highest_ = is_lost ? -INFINITY : highest;
    lane_ = is_lost ? NAN : weights[lane_of_row()];
    for_own_columns(shape_.width, [&](int c, int64_t i) { sums_[c] = is_lost ? NAN : sums[i]; });
  }

  __device__ void add_block(int64_t block) {
    const int64_t begin = first_ > block ? first_ : block, end = end_ < block + kBlock ? end_ : block + kBlock;
    find_scores(block, begin, end);
    for (int64_t j = begin + own_lane(); j < end; j += kWarp) {
      const float p = kernels::weight(weights_.all[j - block], highest_);
      weights_.all[j - block] = p;
      weights_.kept[j - block] = p * call_.scales.dropout_factor(shape_, batch_, head_, row_, j);
    }
    __syncwarp(kWholeWarp);
    for (int64_t j = begin + (lane_of_row() - begin % kLanes + kLanes) % kLanes; j < end; j += kLanes)
      lane_ = lane_ + weights_.all[j - block];
    for (int64_t j = begin; j < end; ++j) {
      const HeadRow value(call_.work.value, batch_, head_ / shape_.group, j);
      const float kept = weights_.kept[j - block];
      for_own_columns(shape_.width,
                      [&](int c, int64_t i) { sums_[c] = portable::fma(kept, widened(value[i]), sums_[c]); });
    }
    __syncwarp(kWholeWarp);
  }

  /// And scales what was summed to their highest.
  __device__ void find_scores(int64_t block, int64_t begin, int64_t end) {
    const HeadRow query(call_.work.query, batch_, head_, row_);
    float raised = highest_;
    for (int64_t j = begin + own_lane(); j < end; j += kWarp) {
      const HeadRow key(call_.work.key, batch_, head_ / shape_.group, j);
      const float y = dot(query, key, shape_.depth) * call_.scales.base_two, n = kernels::rint(y);
      weights_.all[j - block] = y;
      raised = n > raised ? n : raised;
    }
    raised = warp_maximum(raised);
    const float factor = raised > highest_ ? kernels::rescaling(highest_ - raised) : 1.0f;
    lane_ = lane_ * factor;
    for (float& sum : sums_) sum = sum * factor;
    highest_ = raised;
  }

  __device__ void keep() const {
    const HeadRow weights(call_.work.after.weights, batch_, head_, row_),
        sums(call_.work.after.sums, batch_, head_, row_);
    for_own_columns(shape_.width, [&](int c, int64_t i) { sums[i] = sums_[c]; });
    if (own_lane() < kLanes) weights[own_lane()] = lane_;
    if (own_lane() > 0) return;
    weights[kernels::kHighestOfState] = any_ ? highest_ + 0.0f : 0.0f;
    weights[kernels::kAnyOfState] = any_ ? 1.0f : 0.0f;
  }

  __device__ void finish() const {
    const float denominator = sum_of_lanes(lane_);
    const HeadRow output(call_.work.output, batch_, head_, row_), log_sum(call_.work.log_sum, batch_, head_, row_);
    for_own_columns(shape_.width, [&](int c, int64_t i) { output[i] = any_ ? sums_[c] / denominator : 0.0f; });
    if (own_lane() == 0) log_sum[0] = any_ ? kernels::log_sum_of(denominator, highest_) : -INFINITY;
  }

  const Forward<Input>& call_;
  const AttentionShape& shape_;
  int64_t batch_, head_, row_;
  BlockWeights& weights_;
  int64_t first_, end_;
  bool any_;
  float highest_ = -INFINITY, lane_ = 0, sums_[kColumns] = {};
};

template <class Input>
__global__ void attend(Forward<Input> call) {
  __shared__ BlockWeights weights[kWarps];
  const AttentionShape& shape = call.work.shape;
  const int64_t heads = shape.heads * shape.group;
  for (int64_t i = own_warp(); i < shape.batch * heads * shape.rows; i += all_warps())
    QueryRow<Input>(call, i / shape.rows / heads, i / shape.rows % heads, i % shape.rows, weights[threadIdx.x / kWarp])
        .run();
}

}  // namespace

template <class Input>
void attention_forward(const kernels::AttentionForward<Input, float>& work) {
  const int64_t rows = work.shape.batch * work.shape.heads * work.shape.group * work.shape.rows;
  launch("attention", attend<Input>, rows * kWarp, Forward<Input>{work, Scales(work.shape)});
}

template void attention_forward(const kernels::AttentionForward<float, float>&);
template void attention_forward(const kernels::AttentionForward<Bfloat16, float>&);

}  // namespace lockstep::cuda::canonical
