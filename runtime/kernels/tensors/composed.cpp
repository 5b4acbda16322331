#include "runtime/kernels/tensors/composed.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include <cmath>
#include <numbers>

#include "runtime/kernels/tensors/cpu_kernels.h"
#include "runtime/kernels/tensors/drawn_factors.h"
#include "runtime/kernels/tensors/heads.h"
#include "runtime/kernels/tensors/widened.h"

namespace lockstep::composed {
namespace {

Tensor beside(const Tensor& tensor, const Tensor& like) { return tensor.to(like.scalar_type()); }

using kernels::widened;

/// The gate and what it gates, in fp32 or wider.
std::pair<Tensor, Tensor> halves(const Tensor& both) {
  const auto wide = widened(both);
  return {wide.select(-2, 0), wide.select(-2, 1)};
}

/// Which keys a row attends, and which of their weights are dropped.
struct Mask {
  bool causal;
  int64_t first_row;
  Tensor places = {};   ///< of document_attention()
  Tensor factors = {};  ///< [b, h*g, l, s]: 0 of what is dropped; undefined: nothing is

  Tensor dropped(const Tensor& weights) const { return factors.defined() ? weights * factors : weights; }

  /// [b, 1, l, s]: those of the documents before.
  Tensor earlier_documents(const Tensor& rows, const Tensor& keys) const {
    const auto first = (rows + first_row - places).unsqueeze(1).unsqueeze(3);
    return keys < first;
  }
};

/// query * scale against all keys, in fp32 or wider; -inf where the mask hides a key. Keys have a head for each
/// query's.
Tensor scores(const Tensor& query, const Tensor& key, const Mask& mask, double scale) {
  auto result = at::matmul(query, key.transpose(-1, -2)).mul_(scale);
  if (!mask.causal) return result;
  const auto hidden =
      at::ones({query.size(2), key.size(2)}, query.options().dtype(c10::kBool)).triu_(mask.first_row + 1);
  result.masked_fill_(hidden, -INFINITY);
  if (!mask.places.defined()) return result;
  const auto count = [&](int64_t size) { return at::arange(size, mask.places.options()); };
  return result.masked_fill_(mask.earlier_documents(count(query.size(2)), count(key.size(2))), -INFINITY);
}

std::tuple<Tensor, Tensor> attention_of(const Tensor& query, const Tensor& key, const Tensor& value, const Mask& mask,
                                        double scale) {
  const int64_t group = heads::group_of(query, key);
  const auto q = widened(query), k = heads::repeated(widened(key), group), v = heads::repeated(widened(value), group);
  const auto all = scores(q, k, mask, scale);
  const auto log_sum = at::logsumexp(all, {-1});
  const auto finite = log_sum.masked_fill(at::isneginf(log_sum), 0);  // of no keys weights are 0
  const auto output = at::matmul(mask.dropped(at::exp(all - finite.unsqueeze(-1))), v);
  return {heads::inside(output.to(query.scalar_type())), heads::inside(log_sum)};
}

std::tuple<Tensor, Tensor, Tensor> gradients_of(const Tensor& gradient, const Tensor& query, const Tensor& key,
                                                const Tensor& value, const Tensor& output, const Tensor& log_sum,
                                                const Mask& mask, double scale) {
  const int64_t group = heads::group_of(query, key);
  const auto q = widened(query), k = heads::repeated(widened(key), group), v = heads::repeated(widened(value), group);
  const auto g = beside(gradient, q), sums = beside(log_sum, q);
  const auto finite = sums.masked_fill(at::isneginf(sums), 0);
  const auto probability = at::exp(scores(q, k, mask, scale) - finite.unsqueeze(-1));
  const auto dv = at::matmul(mask.dropped(probability).transpose(-1, -2), g);
  const auto mean = (g * beside(output, q)).sum({-1}, /*keepdim=*/true);
  const auto slope = (mask.dropped(at::matmul(g, v.transpose(-1, -2))) - mean) * probability * scale;
  const auto dq = at::matmul(slope, k), dk = at::matmul(slope.transpose(-1, -2), q);
  const auto finish = [&](const Tensor& tensor) { return heads::inside(tensor.to(query.scalar_type())); };
  return {finish(dq), finish(heads::summed(dk, group)), finish(heads::summed(dv, group))};
}

}  // namespace

Tensor weight_gradient(const Tensor& gradient, const Tensor& input) {
  return kernels::weight_gradient(gradient, input);
}

std::tuple<Tensor, Tensor> rms_norm(const Tensor& x, const Tensor& weight, double epsilon) {
  const auto wide = widened(x);
  const auto reciprocal = at::rsqrt(at::mean(wide * wide, {-1}, /*keepdim=*/true) + epsilon);
  return {(wide * reciprocal * beside(weight, wide)).to(x.scalar_type()), reciprocal.squeeze(-1)};
}

std::tuple<Tensor, Tensor> rms_norm_backward(const Tensor& gradient, const Tensor& x, const Tensor& reciprocal,
                                             const Tensor& weight) {
  const auto wide = widened(x), r = beside(reciprocal, wide).unsqueeze(-1), normal = wide * r;
  const auto g = beside(gradient, wide), slope = g * beside(weight, wide);
  const auto dx = (slope - normal * at::mean(slope * normal, {-1}, /*keepdim=*/true)) * r;
  const auto dw = (g * normal).reshape({-1, weight.size(0)}).sum(0);
  return {dx.to(x.scalar_type()), dw.to(weight.scalar_type())};
}

Tensor exponential_sum(const Tensor& logits, const Tensor& shift) {
  const auto wide = widened(logits);
  return at::exp(wide - beside(shift, wide).unsqueeze(-1)).sum(-1).to(shift.scalar_type());
}

Tensor pick_class(const Tensor& logits, const Tensor& target) { return kernels::pick_class(logits, target); }

Tensor cross_entropy_backward(const Tensor& gradient, const Tensor& logits, const Tensor& log_sum,
                              const Tensor& target) {
  const auto wide = widened(logits);
  const auto probability = at::exp(wide - beside(log_sum, wide).unsqueeze(-1));
  const auto is_target = at::arange(wide.size(-1), target.options()) == target.unsqueeze(-1);
  return ((probability - beside(is_target, wide)) * beside(gradient, wide).unsqueeze(-1)).to(logits.scalar_type());
}

std::tuple<Tensor, Tensor> attention(const Tensor& query, const Tensor& key, const Tensor& value, bool causal,
                                     double scale, int64_t first_row) {
  return attention_of(query, key, value, {causal, first_row}, scale);
}

std::tuple<Tensor, Tensor, Tensor> attention_backward(const Tensor& gradient, const Tensor& query, const Tensor& key,
                                                      const Tensor& value, const Tensor& output, const Tensor& log_sum,
                                                      bool causal, double scale, int64_t first_row) {
  return gradients_of(gradient, query, key, value, output, log_sum, {causal, first_row}, scale);
}

/// Its log-sum-exp is to base 2.
std::tuple<Tensor, Tensor> document_attention(const Tensor& query, const Tensor& key, const Tensor& value,
                                              const Tensor& places, const std::optional<Tensor>& draws, double dropout,
                                              double scale, int64_t first_row) {
  const Mask mask{true, first_row, places, dropout_factors(draws, dropout, query, key, first_row)};
  const auto [output, log_sum] = attention_of(query, key, value, mask, scale);
  return {output, log_sum * std::numbers::log2e};
}

std::tuple<Tensor, Tensor, Tensor> document_attention_backward(const Tensor& gradient, const Tensor& query,
                                                               const Tensor& key, const Tensor& value,
                                                               const Tensor& output, const Tensor& log_sum,
                                                               const Tensor& places, const std::optional<Tensor>& draws,
                                                               double dropout, double scale, int64_t first_row) {
  const Mask mask{true, first_row, places, dropout_factors(draws, dropout, query, key, first_row)};
  return gradients_of(gradient, query, key, value, output, log_sum * std::numbers::ln2, mask, scale);
}

Tensor sum_of_squares(const Tensor& x) {
  const auto wide = x.to(c10::kDouble);
  return at::sum(wide * wide);
}

void adamw(const Tensor& parameter, const Tensor& gradient, const Tensor& mean, const Tensor& square,
           double learning_rate, double beta1, double beta2, double epsilon, double weight_decay, double correction1,
           double correction2, double gradient_scale) {
  const auto g = gradient.to(parameter.scalar_type()) * gradient_scale;
  mean.mul_(beta1).add_(g, 1 - beta1);
  square.mul_(beta2).addcmul_(g, g, 1 - beta2);
  const auto denominator = at::sqrt(square).div_(std::sqrt(correction2)).add_(epsilon);
  parameter.mul_(1 - learning_rate * weight_decay).addcdiv_(mean, denominator, -learning_rate / correction1);
}

Tensor swiglu(const Tensor& both) {
  const auto [gate, up] = halves(both);
  return (at::silu(gate) * up).to(both.scalar_type());
}

Tensor swiglu_backward(const Tensor& gradient, const Tensor& both) {
  const auto [gate, up] = halves(both);
  const auto g = beside(gradient, gate);
  return at::stack({at::silu_backward(g * up, gate), g * at::silu(gate)}, -2).to(both.scalar_type());
}

Tensor rotate_pairs(const Tensor& x, const Tensor& cosines, const Tensor& sines, bool back) {
  const auto wide = widened(x);
  const auto pairs = wide.unflatten(-1, {wide.size(-1) / 2, 2});
  const auto a = pairs.select(-1, 0), b = pairs.select(-1, 1);
  const auto c = beside(cosines, wide), s = back ? -beside(sines, wide) : beside(sines, wide);
  const auto turned = at::stack({a * c - b * s, a * s + b * c}, -1).flatten(-2);
  return heads::inside(turned.to(x.scalar_type()));
}

}  // namespace lockstep::composed
