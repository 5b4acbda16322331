#pragma once
#include <cstdint>

#include "core/elementary/instruction_set.h"
#include "core/elementary/portable.h"
#include "runtime/kernels/products/product_loops.h"

/// Scaled dot product attention on raw memory, causal or not, with groups of query heads that share a key-value head.
/// The bits of a result depend on the values it is made of alone: not on which heads, batches or query rows are here,
/// on blocks, threads, alignment or the instruction set. attention_oracle.h is the same in the plainest words.
///
/// For one query row q, with c = scale * log2(e) rounded once to T, all in T:
/// - score of key j: one chain of fma over the elements, from +0; y = score * c; n = rint(y); r = y - n.
/// - Keys come in blocks of kKeyBlock from key 0. M = the largest n so far, by blocks; NaN does not count. When a block
///   raises M, what was summed so far is multiplied by 2^(M before - M), 0 below 2^-125. p = exp2(r) * 2^(n - M), 0
///   where n - M < -125: rounding never meets subnormal numbers, and scaling is exact.
/// - output: one chain of fma over the keys, p * value, from +0; divided by the denominator.
/// - denominator: 16 lanes (lanes.h), key j to lane j mod 16.
/// - log_sum = M + log(denominator) * log2(e), the logarithm to base 2 of the sum of 2^y.
/// - no keys: output +0, log_sum -infinity.
///
/// Gradients, given g = the output's: D = sum of g * output (16 lanes of fma as above; element i to lane i mod 16);
/// p = exp2(y - log_sum), 0 below 2^-125; t = the chain over elements of g * value; s = (p * (t - D)) * scale.
/// - query: one chain of fma over the keys, s * key. value: the sum over query rows of p * g; key: of s * query; both
///   along SumTree::over_elements(all_rows), in a leaf one chain over rows, within a row over the heads of the group.
/// Keys that a row does not attend take no part at all.
///
/// With dropout each weight has a factor f: of those that are kept 1 / (1 - share) rounded to T, of others 0. It is p *
/// f that is multiplied by a value, and t * f in place of t; in the gradient of a value (p * f) * g. The denominator,
/// and with it log_sum, is of all keys.
namespace lockstep::kernels {

constexpr int64_t kKeyBlock = 256;

/// Element (batch, head, row, element) of a tensor.
template <class T>
struct HeadTensor {
  T* data;
  int64_t batch_stride, head_stride, row_stride, element_stride;

  LOCKSTEP_PORTABLE HeadTensor at(int64_t batch, int64_t head) const {
    return {data + batch * batch_stride + head * head_stride, batch_stride, head_stride, row_stride, element_stride};
  }
};

/// Which weights are dropped: drawn as docs/rng.md says, Bernoulli(1 - share), element by element of a stream.
struct AttentionDropout {
  double share = 0;  ///< of all weights, in [0, 1]; 0: nothing is drawn
  /// [batch, query heads, rows, 3]: seed and stream of a row, and which element of it the weight is on the key at the
  /// row's own place, first_row + row; those of other keys lie around it, one by one. Element stride 1.
  HeadTensor<const int64_t> draws = {};
};
constexpr int64_t kDrawsOfRow = 3;

struct AttentionShape {
  int64_t batch, heads;  ///< heads of keys and values
  int64_t group;         ///< query heads per key-value head
  int64_t rows, keys;
  int64_t depth, width;  ///< elements of queries and keys, of values
  bool causal;           ///< row i attends keys 0 .. first_row + i
  int64_t first_row;
  double scale;
  /// [batch, rows]: of each query row how many keys lie between the first of its document and its own; rows of later
  /// keys never attend earlier ones. Null: all keys are of one document. REQUIRES: causal.
  const int64_t* places = nullptr;
  AttentionDropout dropout = {};

  LOCKSTEP_PORTABLE int64_t keys_of(int64_t row) const {
    const int64_t seen = first_row + row + 1;
    return !causal || seen > keys ? keys : (seen > 0 ? seen : 0);
  }
  /// Row i of a batch attends keys first_key_of() .. keys_of() - 1; none if there are none.
  LOCKSTEP_PORTABLE int64_t first_key_of(int64_t batch_index, int64_t row) const {
    if (places == nullptr) return 0;
    const int64_t first = first_row + row - places[batch_index * rows + row];
    return first > keys ? keys : (first > 0 ? first : 0);
  }
};

/// Keys may come in several calls, in their order, cut at multiples of kKeyBlock: this is what query rows have summed
/// so far, all 0 before the first keys. Calls count keys from their own first one, and first_row is less by those
/// before.
template <class T>
struct AttentionState {
  HeadTensor<T> sums = {};     ///< [..., width]: of p * value
  HeadTensor<T> weights = {};  ///< [..., kWeights]: the denominator's lanes, M, and 1 if there were keys, and M is one
};
constexpr int64_t kHighestOfState = 16, kAnyOfState = 17, kWeightsOfState = 18;

/// Queries [batch, heads * group, rows, depth], keys and values [batch, heads, keys, ...]. Outputs have element
/// stride 1. T: float and double; Input: T, and Bfloat16 where T is float.
template <class Input, class T>
struct AttentionForward {
  AttentionShape shape;
  HeadTensor<const Input> query, key, value;
  HeadTensor<T> output, log_sum;
  AttentionState<const T> before = {};  ///< null: these are the first keys
  AttentionState<T> after = {};         ///< with these keys, instead of output and log_sum; null: they are the last
};
template <class Input, class T>
void attention_forward(const AttentionForward<Input, T>& work, const Workers& workers = {},
                       InstructionSet set = best_instruction_set());

/// Query rows are [first, first + shape.rows) of all_rows, whole leaves; key and value gradients are nodes,
/// node_stride apart.
template <class Input, class T>
struct AttentionBackward {
  AttentionShape shape;
  HeadTensor<const Input> gradient, query, key, value, output;
  HeadTensor<const T> log_sum;
  int64_t first, all_rows;
  HeadTensor<T> query_gradient, key_gradient, value_gradient;
  int64_t key_node_stride, value_node_stride;
  HeadTensor<const T> query_before = {};  ///< query_gradient of the keys before these; null: there are none
};
template <class Input, class T>
void attention_backward(const AttentionBackward<Input, T>& work, const Workers& workers = {},
                        InstructionSet set = best_instruction_set());

}  // namespace lockstep::kernels
