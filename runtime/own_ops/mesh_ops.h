#pragma once
#include <ATen/core/Tensor.h>

#include <optional>
#include <tuple>

/// Ops of Lockstep's own, in the dispatcher's namespace `mesh`: they run on plain CPU tensors (their kernels) and on
/// sharded ones (their rules); this folder has a file for each family of them. They have no autograd formulas but where
/// it is said: most are parts of LibTorch's ops (rms_norm, layer_norm, scaled_dot_product_attention,
/// cross_entropy_loss), which on the mesh are taken whole and differentiated with them.
namespace lockstep::mesh_ops {

/// gradient [..., n], input [..., k] -> [n, k]: the sum over all leading dimensions of outer products.
at::Tensor weight_gradient(const at::Tensor& gradient, const at::Tensor& input);

/// RMSNorm (Zhang and Sennrich, 2019): x [..., d], weight [d] -> x * r * weight and r = 1 / sqrt(mean(x^2) + epsilon)
/// [...], in fp32 for 16-bit inputs.
std::tuple<at::Tensor, at::Tensor> rms_norm(const at::Tensor& x, const at::Tensor& weight, double epsilon);
/// Gradients of x and weight.
std::tuple<at::Tensor, at::Tensor> rms_norm_backward(const at::Tensor& gradient, const at::Tensor& x,
                                                     const at::Tensor& reciprocal, const at::Tensor& weight);

/// The gradient of x alone, and that of the weight for every sample: gradient, x [b, ..., d], reciprocal [b, ...] ->
/// [b, d], in x's dtype.
at::Tensor rms_norm_input_gradient(const at::Tensor& gradient, const at::Tensor& x, const at::Tensor& reciprocal,
                                   const at::Tensor& weight);
at::Tensor rms_norm_weight_gradient(const at::Tensor& gradient, const at::Tensor& x, const at::Tensor& reciprocal);

/// logits [..., v], shift [...] -> sum over v of exp(logits - shift), in shift's dtype: fp32 beside 16-bit logits
/// spares a copy of them.
at::Tensor exponential_sum(const at::Tensor& logits, const at::Tensor& shift);
/// logits [..., v], target [...] (int64) -> logits[..., target], 0 where the target is negative.
at::Tensor pick_class(const at::Tensor& logits, const at::Tensor& target);
/// gradient [...], logits [..., v], log_sum [...], target [...] -> gradient * (exp(logits - log_sum) - onehot(target)),
/// in the dtype of logits.
at::Tensor cross_entropy_backward(const at::Tensor& gradient, const at::Tensor& logits, const at::Tensor& log_sum,
                                  const at::Tensor& target);
/// Per token the log-sum-exp minus the target's logit, 0 where the target is `ignored`: logits [..., v], target [...]
/// (int64) -> [...], in `dtype` (without it that of logits), with the bits that logits of that dtype would give, but
/// without a copy of them. Over a sharded vocabulary three small all-reduces: the maximum, the sum, and the loss itself
/// (Shoeybi et al., 2019, section 3). Differentiable in the logits, which are sharded.
at::Tensor token_losses(const at::Tensor& logits, const at::Tensor& target, int64_t ignored,
                        std::optional<c10::ScalarType> dtype = {});

/// query [b, h*g, l, d], key [b, h, s, d], value [b, h, s, e] -> output [b, h*g, l, e], log-sum-exp [b, h*g, l],
/// for the backward alone: natural in native numerics, to base 2 in canonical.
/// With `causal`, query row i attends to keys 0 .. first_row + i.
std::tuple<at::Tensor, at::Tensor> attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                                             bool causal, double scale, int64_t first_row = 0);
std::tuple<at::Tensor, at::Tensor, at::Tensor> attention_backward(const at::Tensor& gradient, const at::Tensor& query,
                                                                  const at::Tensor& key, const at::Tensor& value,
                                                                  const at::Tensor& output, const at::Tensor& log_sum,
                                                                  bool causal, double scale, int64_t first_row = 0);

/// Which weights of attention are dropped: a share, in [0, 1], of those on the keys that a row attends to, as `draws`
/// says (attention_draws(); none are needed where the share is 0). The others are multiplied by 1 / (1 - share).
struct Dropout {
  std::optional<at::Tensor> draws = {};
  double share = 0;
};

/// Whether a share of weights is any. Throws BadInput for one outside of [0, 1].
bool drops_weights(double share);

/// What rows of a query [b, h, l, d] draw from where it attends to `keys` keys, row i being at the place of key
/// first_row + i: [b, h, l, 3], int64, laid out as the query. Element [sample, head, i, j] of the global batch's matrix
/// of weights has the number of a stream that its index there says (docs/rng.md), on every mesh; plain tensors draw
/// from LibTorch's generator.
inline constexpr int64_t kAttentionDraws = 3;
at::Tensor attention_draws(const at::Tensor& query, int64_t keys, int64_t first_row = 0);

/// Causal attention inside of each document of packed samples: query row i attends to keys first_row + i - places[., i]
/// .. first_row + i, places [b, l] (int64) being the tokens of its document in front of it. Results as of attention(),
/// but the log-sum-exp is to base 2 always, and -infinity of a row that attends to none of these keys (its output is
/// 0). Nothing is held for pairs of queries and keys, and what a row does not attend to takes no part, NaN or not; on
/// GPUs the matrix of weights is held, and NaN among other documents' values spreads. Differentiable in query, key and
/// value, once. All keys of a query that is not causal: first_row >= s, places[., i] = first_row + i.
std::tuple<at::Tensor, at::Tensor> document_attention(const at::Tensor& query, const at::Tensor& key,
                                                      const at::Tensor& value, const at::Tensor& places,
                                                      const Dropout& dropout, double scale, int64_t first_row = 0);
std::tuple<at::Tensor, at::Tensor, at::Tensor> document_attention_backward(
    const at::Tensor& gradient, const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
    const at::Tensor& output, const at::Tensor& log_sum, const at::Tensor& places, const Dropout& dropout, double scale,
    int64_t first_row = 0);

/// The places [b, l] of a query's rows in samples that are one document each, where row i is at first_row + i; whole on
/// all ranks. REQUIRES: the query is sharded.
at::Tensor places_of_one_document(const at::Tensor& query, int64_t first_row = 0);

/// attention() of keys that come block by block, in their order, in canonical numerics' bits: for sequences that no
/// rank has whole. Blocks but the last have a multiple of 256 keys. `sums` [b, h*g, l, e] and `weights` [b, h*g, l,
/// 18], in float32 for bfloat16, are what queries have summed so far, all 0 before the first block; query row i attends
/// to keys 0 .. first_row + i of this block.
inline constexpr int64_t kAttentionWeights = 18, kAttentionBlock = 256;
std::tuple<at::Tensor, at::Tensor> attention_over(const at::Tensor& query, const at::Tensor& key,
                                                  const at::Tensor& value, const at::Tensor& sums,
                                                  const at::Tensor& weights, bool causal, double scale,
                                                  int64_t first_row);
/// -> output [b, h*g, l, e] and log-sum-exp [b, h*g, l], in the dtype of the sums.
std::tuple<at::Tensor, at::Tensor> attention_result(const at::Tensor& sums, const at::Tensor& weights);
/// The query's gradient with this block's part, which comes without it, and those of the block's keys and values as
/// nodes [nodes, b, h, s, ...] of the sum over query rows, of which [first, first + l) of all_rows are here; all in the
/// sums' dtype.
std::tuple<at::Tensor, at::Tensor, at::Tensor> attention_over_backward(
    const at::Tensor& gradient, const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
    const at::Tensor& output, const at::Tensor& log_sum, const at::Tensor& query_gradient, bool causal, double scale,
    int64_t first_row, int64_t first, int64_t all_rows);

/// The same two with `places` and `dropout` as of document_attention().
std::tuple<at::Tensor, at::Tensor> document_attention_over(const at::Tensor& query, const at::Tensor& key,
                                                           const at::Tensor& value, const at::Tensor& sums,
                                                           const at::Tensor& weights, const at::Tensor& places,
                                                           const Dropout& dropout, double scale, int64_t first_row);
std::tuple<at::Tensor, at::Tensor, at::Tensor> document_attention_over_backward(
    const at::Tensor& gradient, const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
    const at::Tensor& output, const at::Tensor& log_sum, const at::Tensor& query_gradient, const at::Tensor& places,
    const Dropout& dropout, double scale, int64_t first_row, int64_t first, int64_t all_rows);

/// SwiGLU (Shazeer, 2020): both [..., 2, w] holds a gate and what it gates -> silu(gate) * up [..., w]. Differentiable.
at::Tensor swiglu(const at::Tensor& both);
at::Tensor swiglu_backward(const at::Tensor& gradient, const at::Tensor& both);

/// Rotary position embedding (Su et al., 2021): x [batch, heads, length, size]; pair i of position l is turned by the
/// angle with cosines[l, i] and sines[l, i] (tables [length, size / 2]), the other way with `back`. 16-bit inputs are
/// turned in fp32. Differentiable in x.
at::Tensor rotate_pairs(const at::Tensor& x, const at::Tensor& cosines, const at::Tensor& sines, bool back = false);

/// Numbers of few bits (docs/low_precision.md), `format` being an elementary::NumberFormat
/// (core/elementary/low_precision.h): the float32 numbers that are nearest to x and of the form q / s, q of the format
/// and s the scale of `maximum`, which broadcasts to x; with `power_of_two` s is one. What has a maximum that is not
/// finite is NaN. No derivative: who rounds decides what goes through.
at::Tensor quantize(const at::Tensor& x, const at::Tensor& maximum, int64_t format, bool power_of_two);
/// The same of blocks of 32 elements along `dim`, each under the power of two that it shares (OCP Microscaling Formats
/// v1.0, section 6.3); the last block may be shorter. Blocks are whole: what cuts one is gathered.
at::Tensor quantize_blocks(const at::Tensor& x, int64_t dim, int64_t format);
/// quantize() in two halves: q's codes, one byte an element, and what they stand for. E4M3 and E5M2.
at::Tensor float8_codes(const at::Tensor& x, const at::Tensor& maximum, int64_t format, bool power_of_two);
at::Tensor float8_numbers(const at::Tensor& codes, const at::Tensor& maximum, int64_t format, bool power_of_two);
/// x [..., k], weight [n, k], codes of both, maxima [..., 1] and [n, 1] -> what they stand for, multiplied: x W^T
/// [..., n] in `dtype`. x is of `x_format`, the weight of E4M3. On a GPU, in native numerics, by eight-bit products.
at::Tensor float8_linear(const at::Tensor& x, const at::Tensor& x_maximum, const at::Tensor& weight,
                         const at::Tensor& weight_maximum, int64_t x_format, bool power_of_two, c10::ScalarType dtype);
/// gradient [..., l, n], input [..., l, k], codes of both, maxima [..., 1, n] and [..., 1, k] -> G^T X [n, k] of what
/// they stand for, summed over all leading dimensions; float32. The gradient is of `gradient_format`, the input of
/// E4M3.
at::Tensor float8_weight_gradient(const at::Tensor& gradient, const at::Tensor& gradient_maximum,
                                  const at::Tensor& input, const at::Tensor& input_maximum, int64_t gradient_format,
                                  bool power_of_two);

/// x [..., n] times the Hadamard matrix of n rows (Sylvester's), n a power of two from 2 to 32768, times `scale`:
/// stages h = 1, 2, 4, ..., n / 2 of (a + b, a - b) for pairs h apart, each rounded, then the scale; of 16-bit numbers
/// in float32, rounded once. Where a mesh axis of a power of two of ranks cuts the last dimension evenly, ranks do what
/// is within their shards and exchange halves for the rest: the same bits. Differentiable; the derivative is the op
/// itself.
at::Tensor hadamard_transform(const at::Tensor& x, double scale);

/// Sum of squares of all elements, as a float64 scalar.
at::Tensor sum_of_squares(const at::Tensor& x);

// Sums of integers, which are the same in any order.

/// int64 [2]: the sum of rint(x * 2^24), and how many elements are not finite or not below 2^14 in magnitude (those are
/// left out).
at::Tensor fixed_point_sum(const at::Tensor& x);
inline constexpr int kFixedPointBits = 24;
/// The largest magnitude, NaN if there is one, 0 of nothing; fp32, fp64 for fp64.
at::Tensor absolute_maximum(const at::Tensor& x);
/// int64 [2]: high and low with high * 2^32 + low = the sum of rint(x * scale)^2, where magnitudes above 2^27 and NaN
/// count as 2^27. REQUIRES: scale is a power of two.
at::Tensor scaled_squares(const at::Tensor& x, double scale);

/// One AdamW step in place (Loshchilov and Hutter, 2019, Algorithm 2, decoupled decay), step counted from 1 in the bias
/// corrections, which come as 1 - beta^step.
struct AdamwOptions {
  double learning_rate, beta1, beta2, epsilon, weight_decay, correction1, correction2;
  double gradient_scale = 1;  ///< the gradient is multiplied by it first (clipping), without being written
};
void adamw(const at::Tensor& parameter, const at::Tensor& gradient, const at::Tensor& mean, const at::Tensor& square,
           const AdamwOptions& options);

}  // namespace lockstep::mesh_ops
