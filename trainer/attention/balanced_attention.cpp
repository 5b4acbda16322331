#include "trainer/attention/balanced_attention.h"

#include <torch/csrc/autograd/custom_function.h>

#include <cmath>

#include "core/error.h"
#include "runtime/context/scopes.h"
#include "runtime/context/world.h"
#include "runtime/own_ops/double_backward.h"
#include "runtime/own_ops/mesh_ops.h"
#include "runtime/redistribution/redistribute.h"
#include "trainer/attention/key_gradients.h"

namespace lockstep::trainer {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr int kLength = 2;

bool is_canonical(const Tensor& x) { return layout_of(x).mesh().world().canonical(); }

Tensor gathered(const Tensor& x) {
  auto layout = layout_of(x);
  for (const int axis : layout.cutters(kLength)) layout = layout.with(axis, Placement::replicate());
  return redistribute_values(x, layout, "redistribute");
}

/// What one part attends to.
class Keys {
 public:
  Keys(const QueryRows& rows, int64_t part, const Tensor& keys, const Tensor& values)
      : rows_(rows), keys_(rows.parts().gathered(keys, part)), values_(rows.parts().gathered(values, part)) {}

  std::pair<Tensor, Tensor> of(const QueryRows::Half& half) const {
    const auto seen = rows_.keys_of(half).length;
    return {keys_.narrow(kLength, 0, seen).contiguous(), values_.narrow(kLength, 0, seen).contiguous()};
  }

 private:
  const QueryRows& rows_;
  Tensor keys_, values_;
};

struct SavedHalf {
  Tensor query, output, log_sum;
  RowInputs beside;
};
using Halves = QueryRows::Halves;

/// Gradients of the query, and of keys and values as pieces.
std::tuple<Tensor, Tensor, Tensor> backward_of(const Tensor& gradient, const SavedHalf& half, const Tensor& key,
                                               const Tensor& value, Range rows, int64_t length) {
  BlockAttention attention(half.query, value.size(3), rows, length, half.beside);
  const auto [of_key, of_value] =
      attention.add_backward({gradient, half.query, half.output, half.log_sum}, key, value, {0, key.size(kLength)});
  return {attention.query_gradient(), of_key, of_value};
}

/// What backward knows besides tensors.
struct Specs : torch::CustomClassHolder {
  Specs(const Tensor& of_query, const Tensor& of_key, const Tensor& of_value, const RowInputsOfHalves& beside)
      : query(&spec_of(of_query)),
        key(&spec_of(of_key)),
        value(&spec_of(of_value)),
        has_places(beside.has_places()),
        dropout(beside.dropout()) {}
  const TensorSpec *query, *key, *value;
  bool has_places;
  double dropout;
};

/// Output and log-sum-exp of rows `rows`. Of canonical numerics in one op, which activation_checkpoint keeps;
/// LibTorch's is quicker in blocks.
std::tuple<Tensor, Tensor> attended(const Tensor& query, const Tensor& key, const Tensor& value, Range rows,
                                    const RowInputs& beside) {
  const double scale = 1 / std::sqrt(static_cast<double>(query.size(3)));
  if (is_canonical(query) && beside.places.defined())
    return mesh_ops::document_attention(query, key, value, beside.places.squeeze(1), beside.drops(), scale, rows.start);
  if (is_canonical(query)) return mesh_ops::attention(query, key, value, /*causal=*/true, scale, rows.start);
  BlockAttention attention(query, value.size(3), rows, key.size(kLength), beside);
  attention.add(key, value, {0, key.size(kLength)});
  return attention.result();
}

/// Output and log-sum-exp of what a part computes.
void attend(const QueryRows& rows, int64_t part, const Keys& keys, const Halves& queries,
            const RowInputsOfHalves& beside, Halves& outputs, Halves& log_sums) {
  const auto at = static_cast<size_t>(part);
  const auto halves = rows.computed_by(part);
  for (size_t i = 0; i < halves.size(); ++i) {
    const auto& query = queries[at][i];
    if (!query.defined()) continue;
    const auto [key, value] = keys.of(halves[i]);
    std::tie(outputs[at][i], log_sums[at][i]) = attended(query, key, value, halves[i].positions, beside.of(part, i));
  }
}

/// Of a part's halves, whose output's gradients are `gradients`: the query's in their place, keys' and values' sent.
class PartOfBackward {
 public:
  PartOfBackward(const QueryRows& rows, KeyGradients& of_keys, KeyGradients& of_values)
      : rows_(rows), of_keys_(of_keys), of_values_(of_values) {}

  void run(int64_t part, std::array<Tensor, 2>& gradients, const Keys& keys, const std::array<SavedHalf, 2>& saved) {
    std::array<Tensor, 2> of_keys, of_values;
    const auto halves = rows_.computed_by(part);
    for (size_t i = 0; i < halves.size(); ++i) {
      if (!gradients[i].defined()) continue;
      const auto [key, value] = keys.of(halves[i]);
      std::tie(gradients[i], of_keys[i], of_values[i]) =
          backward_of(gradients[i], saved[i], key, value, halves[i].positions, rows_.parts().length());
    }
    of_keys_.send_from(part, of_keys), of_values_.send_from(part, of_values);
  }

 private:
  const QueryRows& rows_;
  KeyGradients &of_keys_, &of_values_;
};

struct Attention : torch::autograd::Function<Attention> {
  static Tensor forward(AutogradContext* context, const Tensor& query, const Tensor& key, const Tensor& value,
                        const RowInputs* beside) {
    const at::AutoDispatchBelowAutograd below;
    const QueryRows rows(spec_of(query), Balance::kHeadTail);
    variable_list saved{gathered(key), gathered(value), {}};
    const auto queries = rows.spread(query, kQuery);
    const RowInputsOfHalves theirs(rows, *beside);
    Halves outputs(queries.size()), log_sums(queries.size());
    rows.for_each_here([&](int64_t part) {
      attend(rows, part, {rows, part, saved[0], saved[1]}, queries, theirs, outputs, log_sums);
    });
    rows.keep(queries, true, saved), rows.keep(outputs, false, saved), rows.keep(log_sums, true, saved);
    theirs.keep(rows, saved);
    saved[2] = rows.collect(outputs, spec_like(spec_of(query), value.size(3), query.scalar_type()), kOutput);
    context->save_for_backward(saved);
    context->saved_data["specs"] = c10::IValue::make_capsule(c10::make_intrusive<Specs>(query, key, value, theirs));
    return saved[2];
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    if (own_ops::is_differentiated_again())
      fail<BadInput>(
          "balanced attention has no second derivative; set parallelism.context_parallel_load_balancer \"\"");
    const at::AutoDispatchBelowAutograd below;
    const auto specs = c10::static_intrusive_pointer_cast<Specs>(context->saved_data["specs"].toCapsule());
    const auto saved = context->get_saved_variables();
    const auto gradient = redistribute_values(gradients[0], specs->query->layout, "redistribute");
    const auto module = RunContext::current().module();
    const PhaseScope phase(Phase::kReduce);  // ops that only some meshes have
    const QueryRows rows(*specs->query, Balance::kHeadTail, module);
    auto halves = rows.spread(gradient, kGradient);
    const bool canonical = is_canonical(gradient);
    KeyGradients of_keys(rows, canonical, kKeyGradient), of_values(rows, canonical, kValueGradient);
    PartOfBackward work(rows, of_keys, of_values);
    const Tensor* next = saved.data() + 3;
    const auto queries = rows.restored({}, next), outputs = rows.restored(saved[2], next),
               log_sums = rows.restored({}, next);
    const RowInputsOfHalves beside(rows, specs->has_places, specs->dropout, next);
    rows.for_each_here([&](int64_t part) {
      const auto at = static_cast<size_t>(part);
      const auto half = [&](size_t i) {
        return SavedHalf{queries[at][i], outputs[at][i], log_sums[at][i], beside.of(part, i)};
      };
      work.run(part, halves[at], {rows, part, saved[0], saved[1]}, {half(0), half(1)});
    });
    const auto all = [&](KeyGradients& from, const TensorSpec* spec) {
      std::vector<Tensor> joined(halves.size());
      rows.for_each_here([&](int64_t part) { joined[static_cast<size_t>(part)] = from.joined(part).to(spec->dtype); });
      return rows.parts().joined(joined, spec);
    };
    const auto of_key = all(of_keys, specs->key), of_value = all(of_values, specs->value);
    return {rows.collect(halves, specs->query, kQueryGradient), of_key, of_value, {}};
  }
};

}  // namespace

Tensor balanced_attention(const Tensor& query, const Tensor& key, const Tensor& value,
                          const AttentionOptions& options) {
  const auto own = finished(query);
  const auto beside = row_inputs(own, options);
  return Attention::apply(own, finished(key), finished(value), &beside);
}

}  // namespace lockstep::trainer
