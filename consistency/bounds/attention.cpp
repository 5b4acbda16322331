// Attention: s = scale q k^T, p = softmax(s), o = p v, over l queries and n keys of d elements, values of e.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include <limits>
#include <numbers>

#include "consistency/bounds/families.h"

namespace lockstep::bounds {
namespace {

/// Exponentials, and the factors by which blocks of keys are joined.
constexpr double kExponentials = 24;

/// Of 16-bit inputs: weights, slopes and the products that they are made of are kept in 16 bits, and each block of at
/// least so many queries or keys is added to what the blocks before it gave, in 16 bits.
constexpr double kStored = 4, kBlock = 32;

/// What both directions need, of each query head and in double.
struct Scores {
  at::Tensor key, value;  ///< magnitudes, one for each query head; value: with what weights are multiplied by
  at::Tensor scores;      ///< s; masked ones are -infinity
  at::Tensor error;       ///< how far the exponent of a weight may be from s, before what it is normalised by
};

at::Tensor for_each_query_head(const at::Tensor& tensor, const at::Tensor& query) {
  return tensor.repeat_interleave(query.size(1) / std::max<int64_t>(1, tensor.size(1)), 1);
}

at::Tensor masked_to_documents(const ExactCall& call, const at::Tensor& scores) {
  const auto rows = (at::arange(scores.size(-2)) + call.argument("first_row").toInt()).unsqueeze(1);
  const auto keys = at::arange(scores.size(-1)).unsqueeze(0);
  const auto first = rows - call.argument("places").toTensor().unsqueeze(1).unsqueeze(3);
  const auto is_hidden = at::logical_or(keys > rows, keys < first);
  return scores.masked_fill(is_hidden, -std::numeric_limits<double>::infinity());
}

/// Ops in documents, whose log-sum-exp is to base 2.
bool has_documents(const ExactCall& call) { return call.schema.argumentIndexWithName("places").has_value(); }

at::Tensor masked(const ExactCall& call, const at::Tensor& scores) {
  if (has_documents(call)) return masked_to_documents(call, scores);
  if (!call.argument("causal").toBool()) return scores;
  const auto rows = at::arange(scores.size(-2)).unsqueeze(1) + call.argument("first_row").toInt();
  const auto is_later = at::arange(scores.size(-1)).unsqueeze(0) > rows;
  return scores.masked_fill(is_later, -std::numeric_limits<double>::infinity());
}

/// What weights that are not dropped are multiplied by.
double dropout_factor(const ExactCall& call) {
  const auto share = call.schema.argumentIndexWithName("dropout") ? call.argument("dropout").toDouble() : 0;
  return share < 1 ? 1 / (1 - share) : 0;
}

Scores scores_of(const ExactCall& call) {
  const auto query = call.tensor("query"), key = for_each_query_head(call.tensor("key"), query);
  const double scale = call.number("scale"), d = static_cast<double>(query.size(-1));
  const auto scores = at::matmul(query, key.transpose(-2, -1)) * scale;
  const auto sizes = at::matmul(query.abs(), key.abs().transpose(-2, -1)) * std::abs(scale);
  const auto largest = sizes.amax(-1, /*keepdim=*/true);
  // Where a machine has no 16-bit products with a 32-bit result, scores are rounded to 16 bits.
  const auto error = call.rounded(1, (d + 4) * sizes + 4 * largest) + call.stored(1, scores.abs());
  const auto value = for_each_query_head(call.magnitude("value"), query) * dropout_factor(call);
  return {key.abs(), value, masked(call, scores), error};
}

/// A weight and the sum that it is divided by are wrong by their exponents' errors; both weights are at most 1.
std::vector<at::Tensor> forward(const ExactCall& call) {
  const auto all = scores_of(call);
  const auto p = all.scores.softmax(-1).nan_to_num(0);
  const auto largest = all.error.amax(-1, /*keepdim=*/true);
  const auto keys = static_cast<double>(all.scores.size(-1));
  const auto by_exponents = (p * at::expm1(all.error + largest)).nan_to_num(1).clamp_max(1);
  const auto weights = by_exponents + call.rounded(2 * keys + kExponentials, p) + cut_exponential(p.log());
  const auto output = at::matmul(weights, all.value) + call.stored(2 + keys / kBlock, at::matmul(p, all.value));
  const auto log_sum = largest.squeeze(-1) + call.rounded(1, keys + kExponentials + 2 * call.exact[1].abs());
  return {output, has_documents(call) ? log_sum * std::numbers::log2e : log_sum};
}

/// Back from heads of queries to the heads that they share.
at::Tensor of_shared_heads(const at::Tensor& tensor, const at::Tensor& like) {
  return tensor.unflatten(1, {like.size(1), -1}).sum(2);
}

/// dv = p^T g; ds = scale p (g v^T - sum(g o)); dq = ds k; dk = ds^T q.
std::vector<at::Tensor> backward(const ExactCall& call) {
  const auto all = scores_of(call);
  const auto gradient = call.magnitude("gradient"), query = call.magnitude("query");
  const auto log_sum = call.tensor("log_sum").unsqueeze(-1) * (has_documents(call) ? std::numbers::ln2 : 1);
  const auto p = (all.scores - log_sum).exp().nan_to_num(0);
  const double scale = std::abs(call.number("scale")), e = static_cast<double>(gradient.size(-1));
  const auto groups = static_cast<double>(query.size(1)) / static_cast<double>(call.tensor("key").size(1));
  const auto queries = static_cast<double>(query.size(-2)) * groups, keys = static_cast<double>(p.size(-1));
  const auto error = at::expm1(all.error + call.rounded(2, log_sum.abs()));
  const auto products = at::matmul(gradient, all.value.transpose(-2, -1)) +
                        (gradient * call.magnitude("output")).sum(-1, /*keepdim=*/true);
  const at::Tensor weights = p.transpose(-2, -1), slopes = scale * p * products, turned = slopes.transpose(-2, -1),
                   cut = cut_exponential(all.scores - log_sum), of_cut = cut * scale * products;
  const auto dq = at::matmul(slopes * error + call.rounded(kExponentials + e + keys, slopes) + of_cut, all.key) +
                  call.stored(kStored + keys / kBlock, at::matmul(slopes, all.key));
  const auto dk =
      at::matmul((slopes * error + of_cut).transpose(-2, -1) + call.rounded(kExponentials + e + queries, turned),
                 query) +
      call.stored(kStored + queries / kBlock + groups, at::matmul(turned, query));
  const auto dv =
      at::matmul((p * error + cut).transpose(-2, -1) + call.rounded(kExponentials + queries, weights), gradient) +
      call.stored(kStored + queries / kBlock + groups, at::matmul(weights, gradient));
  return {dq, of_shared_heads(dk, call.tensor("key")),
          of_shared_heads(dv * dropout_factor(call), call.tensor("value"))};
}

constexpr Row kRows[] = {
    {"mesh::attention", {ErrorBound::Kind::kRounded, forward}},
    {"mesh::attention_backward", {ErrorBound::Kind::kRounded, backward}},
    {"mesh::document_attention", {ErrorBound::Kind::kRounded, forward}},
    {"mesh::document_attention_backward", {ErrorBound::Kind::kRounded, backward}},
};

}  // namespace

std::span<const Row> attention() { return kRows; }

}  // namespace lockstep::bounds
