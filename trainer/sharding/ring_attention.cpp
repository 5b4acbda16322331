#include "trainer/sharding/ring_attention.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <torch/csrc/autograd/custom_function.h>

#include <cmath>
#include <optional>

#include "core/error.h"
#include "runtime/context/scopes.h"
#include "runtime/context/world.h"
#include "runtime/kernels/sums/sum_tree.h"
#include "runtime/own_ops/double_backward.h"
#include "runtime/own_ops/mesh_ops.h"
#include "runtime/redistribution/redistribute.h"
#include "runtime/tensor/sharded_tensor.h"
#include "runtime/transfer/transfer.h"
#include "trainer/gradients/replica_sums.h"
#include "trainer/job/mesh_degrees.h"
#include "trainer/sharding/block_attention.h"
#include "trainer/sharding/sequence_parts.h"

namespace lockstep::trainer {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

enum class Kind : uint8_t { kKey, kValue, kKeyGradient, kValueGradient };

/// Of what part `of` has, or is to have, in a ring (attention_number()).
uint64_t tag_of(uint64_t ring, Kind kind, int64_t of) {
  return ring << 24 | static_cast<uint64_t>(of) << 2 | static_cast<uint64_t>(kind);
}

/// Keys and values as they pass by one part: those before its own come from the part before, in their order, and all go
/// on to the part behind before anybody waits for what they are used for.
class Passing {
 public:
  Passing(const SequenceParts& parts, uint64_t ring, int64_t part, const Tensor& key, const Tensor& value)
      : parts_(parts), ring_(ring), part_(part), key_(key), value_(value) {
    expect(0);
  }

  /// Those of the next part, from the first on.
  std::pair<Tensor, Tensor> next() {
    const int64_t from = next_++;
    const auto key = from == part_ ? parts_.of(key_, part_) : expected_[0]->finish();
    const auto value = from == part_ ? parts_.of(value_, part_) : expected_[1]->finish();
    expect(next_);
    if (part_ + 1 < parts_.count()) {
      send(key, parts_.mesh(part_ + 1), tag_of(ring_, Kind::kKey, from));
      send(value, parts_.mesh(part_ + 1), tag_of(ring_, Kind::kValue, from));
    }
    return {key, value};
  }

 private:
  void expect(int64_t from) {
    if (from >= part_) return;
    const auto& sender = parts_.mesh(part_ - 1);
    expected_[0].emplace(parts_.spec(spec_of(key_), part_, parts_.positions(from).length), sender,
                         tag_of(ring_, Kind::kKey, from));
    expected_[1].emplace(parts_.spec(spec_of(value_), part_, parts_.positions(from).length), sender,
                         tag_of(ring_, Kind::kValue, from));
  }

  const SequenceParts& parts_;
  uint64_t ring_;
  int64_t part_, next_ = 0;
  const Tensor &key_, &value_;
  std::optional<PendingTransfer> expected_[2];
};

/// The first position at which a sequence may not be cut; none: it is cut well.
std::optional<int64_t> wrong_cut(const ShardingPlan& plan, int64_t length) {
  const auto layout = plan.activation({1, length, 1}, "batch length embed");
  const int axis = plan.mesh().find_axis(axis::kContext);
  for (int64_t part = 1; part < plan.mesh().axis_size(axis); ++part) {
    const auto cut = layout.cut(plan.mesh().member(plan.mesh().ranks()[0], axis, part), 1, length);
    if (cut.length > 0 && cut.start % mesh_ops::kAttentionBlock != 0) return cut.start;
  }
  return std::nullopt;
}

/// The next longer one that is cut well; 0: there is none near.
int64_t fitting_length(const ShardingPlan& plan, int64_t length) {
  constexpr int64_t kBlock = mesh_ops::kAttentionBlock;
  for (int64_t other = (length / kBlock + 1) * kBlock; other <= 64 * length + 64 * kBlock; other += kBlock)
    if (!wrong_cut(plan, other)) return other;
  return 0;
}

/// What one part's queries make of the gradient.
class PartOfBackward {
 public:
  PartOfBackward(const SequenceParts& parts, uint64_t ring, int64_t part) : parts_(parts), ring_(ring), part_(part) {}

  /// Returns the query's gradient; those of other parts' keys and values go there.
  Tensor run(BlockAttention attention, Passing passing, const std::vector<Tensor>& saved) {
    for (int64_t from = 0; from <= part_; ++from) {
      const auto [key, value] = passing.next();
      const auto [of_key, of_value] = attention.add_backward(saved, key, value, parts_.positions(from));
      if (from == part_) {
        own_ = {of_key, of_value};
        continue;
      }
      send(of_key, parts_.mesh(from), tag_of(ring_, Kind::kKeyGradient, part_));
      send(of_value, parts_.mesh(from), tag_of(ring_, Kind::kValueGradient, part_));
    }
    return attention.query_gradient();
  }

  /// The gradient of this part's keys, or values, from all parts that attend to them.
  Tensor joined(bool of_values) const {
    const auto& own = of_values ? own_.second : own_.first;
    GradientOfKeys sum(spec_of(own), parts_.length());
    for (int64_t from = 0; from < parts_.count(); ++from)
      sum.add(parts_.positions(from), from < part_ ? Tensor() : from == part_ ? own : arrived(of_values, own, from));
    return sum.finish();
  }

 private:
  /// Of as many nodes as the rows of `from` are.
  Tensor arrived(bool of_values, const Tensor& own, int64_t from) const {
    const auto& spec = spec_of(own);
    auto sizes = spec.sizes;
    sizes[0] = GradientOfKeys::nodes(spec, parts_.positions(from), parts_.length());
    const auto* arrives = parts_.mesh(part_).specs().intern(spec.layout, sizes, spec.dtype);
    const auto kind = of_values ? Kind::kValueGradient : Kind::kKeyGradient;
    return PendingTransfer(arrives, parts_.mesh(from), tag_of(ring_, kind, from)).finish();
  }

  const SequenceParts& parts_;
  uint64_t ring_;
  int64_t part_;
  std::pair<Tensor, Tensor> own_;
};

struct Ring : torch::autograd::Function<Ring> {
  static Tensor forward(AutogradContext* context, const Tensor& query, const Tensor& key, const Tensor& value) {
    const at::AutoDispatchBelowAutograd below;
    const SequenceParts parts(spec_of(query));
    const auto ring = attention_number();
    const auto queries = parts.each(query);
    auto outputs = queries, log_sums = queries;
    for_each_part_here(parts, "", [&](int64_t part) {
      const auto at = static_cast<size_t>(part);
      BlockAttention attention(queries[at], value.size(3), parts.positions(part), parts.length());
      Passing passing(parts, ring, part, key, value);
      for (int64_t from = 0; from <= part; ++from) {
        const auto [keys, values] = passing.next();
        attention.add(keys, values, parts.positions(from));
      }
      std::tie(outputs[at], log_sums[at]) = attention.result();
    });
    auto output = parts.joined(outputs, spec_like(spec_of(query), value.size(3), query.scalar_type()));
    const auto log_sum = parts.joined(log_sums, spec_like(spec_of(query), -1, BlockAttention::wide(query)));
    context->save_for_backward({query, key, value, output, log_sum});
    return output;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    if (own_ops::is_differentiated_again())
      fail<BadInput>("attention in a ring has no second derivative; use context_parallel_rotate_method \"allgather\"");
    const at::AutoDispatchBelowAutograd below;
    const auto saved = context->get_saved_variables();
    const auto &query = saved[0], &key = saved[1], &value = saved[2];
    const SequenceParts parts(spec_of(query));
    const auto ring = attention_number();
    const auto gradient = redistribute_values(gradients[0], layout_of(query), "redistribute");
    const auto module = RunContext::current().module();
    const PhaseScope phase(Phase::kReduce);  // ops that only some meshes have
    std::vector<std::vector<Tensor>> inputs;
    for (const auto& whole : {gradient, query, saved[3], saved[4]}) inputs.push_back(parts.each(whole));
    auto of_query = inputs[0], of_key = of_query, of_value = of_query;
    std::vector<PartOfBackward> work;
    for (int64_t part = 0; part < parts.count(); ++part) work.emplace_back(parts, ring, part);
    for_each_part_here(parts, module, [&](int64_t part) {
      const auto at = static_cast<size_t>(part);
      const std::vector<Tensor> mine{inputs[0][at], inputs[1][at], inputs[2][at], inputs[3][at]};
      BlockAttention attention(mine[1], value.size(3), parts.positions(part), parts.length());
      of_query[at] = work[at].run(std::move(attention), Passing(parts, ring, part, key, value), mine);
    });
    for_each_part_here(parts, module, [&](int64_t part) {
      const auto at = static_cast<size_t>(part);
      of_key[at] = work[at].joined(false).to(key.scalar_type());
      of_value[at] = work[at].joined(true).to(value.scalar_type());
    });
    return {parts.joined(of_query, &spec_of(query)), parts.joined(of_key, &spec_of(key)),
            parts.joined(of_value, &spec_of(value))};
  }
};

}  // namespace

Tensor ring_attention(const Tensor& query, const Tensor& key, const Tensor& value) {
  return Ring::apply(finished(query), finished(key), finished(value));
}

void require_ring_fits(const ShardingPlan& plan, const std::string& key, int64_t length) {
  if (!plan.mesh().world().canonical() || plan.mesh().find_axis(axis::kContext) < 0) return;
  const auto cut = wrong_cut(plan, length);
  if (!cut) return;
  const int64_t other = fitting_length(plan, length);
  fail<BadInput>(
      "{} {}: sequences are cut at {}, and canonical numerics takes the keys of a ring in blocks of {}. {}Choose "
      "another context_parallel_degree, or parallelism.context_parallel_rotate_method allgather or ulysses.",
      key, length, *cut, mesh_ops::kAttentionBlock, other > 0 ? fmt::format("{} {} would do. ", key, other) : "");
}

}  // namespace lockstep::trainer
