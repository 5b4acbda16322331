#include "trainer/attention/block_attention.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include <cmath>

#include "core/error.h"
#include "runtime/context/world.h"
#include "runtime/plain/plain_tensors.h"
#include "runtime/tensor/sharded_tensor.h"
#include "trainer/gradients/replica_sums.h"

namespace lockstep::trainer {
namespace {

using at::Tensor;

bool is_canonical(const TensorSpec& spec) { return spec.layout.mesh().world().canonical(); }

/// Laid out as `like`, with `size` elements in the last dimension.
Tensor zeros(const Tensor& like, int64_t size, c10::ScalarType dtype) {
  const PlainTensors guard;
  const auto& spec = spec_of(like);
  auto sizes = spec.sizes;
  sizes.back() = size;
  const auto* wanted = spec.layout.mesh().specs().intern(spec.layout, sizes, dtype);
  Shards shards;
  for (const auto& local : wanted->local_sizes)
    shards.push_back(at::zeros(local, at::dtype(storage(*wanted)).device(spec.layout.mesh().world().shard_device())));
  return make_sharded(wanted, std::move(shards));
}

/// Of a block with keys `held`.
Tensor rows_of(const Tensor& block, Range held, Range wanted) {
  return wanted == held ? block : block.narrow(2, wanted.start - held.start, wanted.length).contiguous();
}

}  // namespace

BlockAttention::BlockAttention(const Tensor& query, int64_t width, Range rows, int64_t length, const RowInputs& beside)
    : query_(query),
      canonical_(is_canonical(spec_of(query))),
      width_(width),
      scale_(1 / std::sqrt(static_cast<double>(query.size(3)))),
      rows_(rows),
      length_(length),
      places_(beside.places.defined() ? beside.places.squeeze(1) : beside.places),
      dropout_(beside.drops()) {}

c10::ScalarType BlockAttention::wide(const Tensor& query) {
  return query.scalar_type() == c10::kDouble ? c10::kDouble : c10::kFloat;
}

void BlockAttention::add(const Tensor& key, const Tensor& value, Range keys) {
  if (!canonical_) {
    for (const auto& part : native_parts(keys)) add_native(rows_of(key, keys, part), rows_of(value, keys, part), part);
    return;
  }
  if (!sums_.defined())
    sums_ = zeros(query_, width_, wide(query_)), weights_ = zeros(query_, mesh_ops::kAttentionWeights, wide(query_));
  const int64_t first = rows_.start - keys.start;
  std::tie(sums_, weights_) =
      places_.defined()
          ? mesh_ops::document_attention_over(query_, key, value, sums_, weights_, places_, dropout_, scale_, first)
          : mesh_ops::attention_over(query_, key, value, sums_, weights_, /*causal=*/true, scale_, first);
}

/// LibTorch's kernel takes a mask where rows begin inside of a block: keys that all of them see are a part of their
/// own there.
std::vector<Range> BlockAttention::native_parts(Range keys) const {
  const int64_t seen = rows_.start - keys.start;
  if (places_.defined() || !hides(keys) || seen <= 0) return {keys};
  return {{keys.start, seen}, {rows_.start, keys.length - seen}};
}

std::tuple<Tensor, Tensor> BlockAttention::native_block(const Tensor& key, const Tensor& value, Range keys) const {
  const int64_t first = rows_.start - keys.start;
  if (places_.defined()) return mesh_ops::document_attention(query_, key, value, places_, dropout_, scale_, first);
  return mesh_ops::attention(query_, key, value, hides(keys), scale_, hides(keys) ? first : 0);
}

/// Parts of a softmax are put together by their log-sum-exp. A row may see none of the keys so far.
void BlockAttention::add_native(const Tensor& key, const Tensor& value, Range keys) {
  auto [output, log_sum] = native_block(key, value, keys);
  output = output.to(wide(query_));
  if (!sums_.defined()) return (void)(sums_ = output, weights_ = log_sum);
  const bool base_two = places_.defined();
  const auto both = base_two ? at::logaddexp2(weights_, log_sum) : at::logaddexp(weights_, log_sum);
  const auto finite = base_two ? both.masked_fill(at::eq(both, -INFINITY), 0) : both;
  const auto share = [&](const Tensor& sum) {
    return (base_two ? at::exp2(sum - finite) : at::exp(sum - finite)).unsqueeze(3);
  };
  sums_ = sums_ * share(weights_) + output * share(log_sum);
  weights_ = both;
}

std::tuple<Tensor, Tensor> BlockAttention::result() const {
  if (!canonical_) return {sums_.to(query_.scalar_type()), weights_};
  const auto [output, log_sum] = mesh_ops::attention_result(sums_, weights_);
  return {output.to(query_.scalar_type()), log_sum};
}

std::pair<Tensor, Tensor> BlockAttention::add_backward(const std::vector<Tensor>& saved, const Tensor& key,
                                                       const Tensor& value, Range keys) {
  const auto &gradient = saved[0], &query = saved[1], &output = saved[2], &log_sum = saved[3];
  const int64_t first = rows_.start - keys.start;
  if (!canonical_) return add_native_backward(saved, key, value, keys);
  if (!query_gradient_.defined()) query_gradient_ = zeros(query, query.size(3), wide(query));
  auto [of_query, of_key, of_value] =
      places_.defined()
          ? mesh_ops::document_attention_over_backward(gradient, query, key, value, output, log_sum, query_gradient_,
                                                       places_, dropout_, scale_, first, rows_.start, length_)
          : mesh_ops::attention_over_backward(gradient, query, key, value, output, log_sum, query_gradient_,
                                              /*causal=*/true, scale_, first, rows_.start, length_);
  query_gradient_ = of_query;
  return {of_key, of_value};
}

std::pair<Tensor, Tensor> BlockAttention::add_native_backward(const std::vector<Tensor>& saved, const Tensor& key,
                                                              const Tensor& value, Range keys) {
  const auto &gradient = saved[0], &query = saved[1], &output = saved[2], &log_sum = saved[3];
  std::vector<Tensor> of_keys, of_values;
  for (const auto& part : native_parts(keys)) {
    const auto k = rows_of(key, keys, part), v = rows_of(value, keys, part);
    const int64_t first = rows_.start - part.start;
    const auto [of_query, of_key, of_value] =
        places_.defined() ? mesh_ops::document_attention_backward(gradient, query, k, v, output, log_sum, places_,
                                                                  dropout_, scale_, first)
                          : mesh_ops::attention_backward(gradient, query, k, v, output, log_sum, hides(part), scale_,
                                                         hides(part) ? first : 0);
    query_gradient_ = sum_of(query_gradient_, of_query.to(wide(query)));
    of_keys.push_back(of_key.to(wide(query))), of_values.push_back(of_value.to(wide(query)));
  }
  return {at::cat(of_keys, 2).unsqueeze(0), at::cat(of_values, 2).unsqueeze(0)};
}

Tensor BlockAttention::query_gradient() const { return query_gradient_.to(query_.scalar_type()); }

GradientOfKeys::GradientOfKeys(const TensorSpec& like, int64_t length)
    : canonical_(is_canonical(like)), tree_(SumTree::over_elements(length)), joiner_(tree_) {}

int64_t GradientOfKeys::nodes(const TensorSpec& like, Range rows, int64_t length) {
  const auto tree = SumTree::over_elements(length);
  return is_canonical(like) ? static_cast<int64_t>(cover(tree, rows.start, rows.length).size()) : 1;
}

void GradientOfKeys::add(Range rows, const Tensor& pieces) {
  if (!canonical_) return (void)(sum_ = sum_of(sum_, pieces.defined() ? pieces.select(0, 0) : pieces));
  int64_t n = 0;
  for (const auto& node : cover(tree_, rows.start, rows.length))
    joiner_.add(node, pieces.defined() ? pieces.select(0, n++) : pieces, sum_of);
}

Tensor GradientOfKeys::finish() {
  if (!canonical_) return sum_;
  LOCKSTEP_CHECK(joiner_.is_complete(), "rows of a sequence are missing");
  return joiner_.parts()[0].value;
}

}  // namespace lockstep::trainer
