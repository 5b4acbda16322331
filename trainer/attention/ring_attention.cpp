#include "trainer/attention/ring_attention.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <torch/csrc/autograd/custom_function.h>

#include <cmath>
#include <map>
#include <optional>
#include <set>

#include "core/error.h"
#include "runtime/context/scopes.h"
#include "runtime/context/world.h"
#include "runtime/own_ops/double_backward.h"
#include "runtime/own_ops/mesh_ops.h"
#include "runtime/redistribution/redistribute.h"
#include "runtime/tensor/sharded_tensor.h"
#include "runtime/transfer/transfer.h"
#include "trainer/attention/block_attention.h"
#include "trainer/attention/key_gradients.h"
#include "trainer/attention/query_rows.h"

namespace lockstep::trainer {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

using Halves = QueryRows::Halves;

/// Which parts keys pass by: from the one that has them on, and round, those that attend to them.
class Way {
 public:
  explicit Way(const QueryRows& rows) : rows_(rows) {}
  std::optional<int64_t> before(int64_t part, int64_t of) const { return next(part, of, of, -1); }
  std::optional<int64_t> behind(int64_t part, int64_t of) const {
    const auto found = next(part, of, part, 1);
    return found == of ? std::nullopt : found;
  }

 private:
  /// The next part in a direction that takes keys of `of`, but for `end` itself.
  std::optional<int64_t> next(int64_t part, int64_t of, int64_t end, int64_t step) const {
    const int64_t count = rows_.parts().count();
    if (step < 0 && part == end) return std::nullopt;
    for (int64_t n = 1; n < count; ++n) {
      const int64_t other = (part + count + n * step % count) % count;
      if (rows_.takes(other, of)) return other;
    }
    return std::nullopt;
  }

  const QueryRows& rows_;
};

/// Keys and values as they pass by one part. Its own ones leave at once, for the part behind; those of others come from
/// the part before, in their order, and go on to the part behind before anybody waits for what they are used for.
class Passing {
 public:
  Passing(const QueryRows& rows, int64_t part, const Tensor& key, const Tensor& value)
      : rows_(rows), way_(rows), part_(part), key_(key), value_(value) {
    own_ = {rows.parts().of(key, part), rows.parts().of(value, part)};
    hand_on(part, own_);
    for (int64_t of = 0; of < rows.parts().count(); ++of)
      if (of != part && rows.takes(part, of) && way_.before(part, of) == of) begin(of);
    expect();
  }

  /// Those of the next part, from the first on.
  std::pair<Tensor, Tensor> next() {
    const int64_t of = next_++;
    if (of == part_) return std::exchange(own_, {});
    auto taken = expected_.extract(of);
    std::pair both(taken.mapped().first.finish(), taken.mapped().second.finish());
    expect();
    hand_on(of, both);
    return both;
  }

  /// After a part's own ones: begins to take those behind them. What came from the same part till then comes first.
  void go_on() { expect(); }

 private:
  using Both = std::pair<Tensor, Tensor>;

  void hand_on(int64_t of, const Both& both) const {
    const auto behind = way_.behind(part_, of);
    if (!behind) return;
    send(both.first, rows_.parts().mesh(*behind), rows_.tag(kKey, of));
    send(both.second, rows_.parts().mesh(*behind), rows_.tag(kValue, of));
  }

  void expect() {
    if (next_ != part_ && next_ < rows_.parts().count() && rows_.takes(part_, next_) && !expected_.contains(next_))
      begin(next_);
  }

  void begin(int64_t of) {
    const auto& parts = rows_.parts();
    const auto& sender = parts.mesh(*way_.before(part_, of));
    const auto spec = [&](const Tensor& x) { return parts.spec(spec_of(x), part_, parts.positions(of).length); };
    PendingTransfer key(spec(key_), sender, rows_.tag(kKey, of));
    expected_.emplace(of, std::pair(std::move(key), PendingTransfer(spec(value_), sender, rows_.tag(kValue, of))));
  }

  const QueryRows& rows_;
  Way way_;
  int64_t part_, next_ = 0;
  const Tensor &key_, &value_;
  Both own_;
  std::map<int64_t, std::pair<PendingTransfer, PendingTransfer>> expected_;
};

/// What backward knows of the query besides tensors.
struct QueryOfRing : torch::CustomClassHolder {
  QueryOfRing(const TensorSpec& of, Balance how, const RowInputsOfHalves& beside)
      : spec(&of), balance(how), has_places(beside.has_places()), dropout(beside.dropout()) {}
  const TensorSpec* spec;
  Balance balance;
  bool has_places;
  double dropout;
};

/// What a part does: its halves attend to keys as these pass by.
struct PartOfRing {
  Passing passing;
  std::array<std::optional<BlockAttention>, 2> halves;
};

/// Of the parts that are here; no part waits yet.
std::vector<std::optional<PartOfRing>> parts_of(const QueryRows& rows, const Halves& queries,
                                                const RowInputsOfHalves& beside, const Tensor& key,
                                                const Tensor& value) {
  std::vector<std::optional<PartOfRing>> all(queries.size());
  rows.for_each_here([&](int64_t part) {
    const auto at = static_cast<size_t>(part);
    all[at].emplace(PartOfRing{Passing(rows, part, key, value), {}});
    const auto computed = rows.computed_by(part);
    for (size_t i = 0; i < computed.size(); ++i)
      if (queries[at][i].defined())
        all[at]->halves[i].emplace(queries[at][i], value.size(3), computed[i].positions, rows.parts().length(),
                                   beside.of(part, i));
  });
  return all;
}

void attend(const QueryRows& rows, std::vector<std::optional<PartOfRing>>& work) {
  rows.for_each_block_here([&](int64_t part, int64_t of) {
    auto& [passing, halves] = *work[static_cast<size_t>(part)];
    const auto [key, value] = passing.next();
    if (of == part) passing.go_on();
    const auto computed = rows.computed_by(part);
    for (size_t i = 0; i < computed.size(); ++i)
      if (computed[i].meets(of)) halves[i]->add(key, value, rows.parts().positions(of));
  });
}

/// What backward takes: gradient, query, output and log-sum-exp of each half.
struct BackwardInputs {
  Halves gradients, queries, outputs, log_sums;
  std::vector<Tensor> of(int64_t part, size_t half) const {
    const auto at = static_cast<size_t>(part);
    return {gradients[at][half], queries[at][half], outputs[at][half], log_sums[at][half]};
  }
};

/// From whom a part takes keys behind its own.
std::set<int64_t> senders_of_later_keys(const QueryRows& rows, int64_t part) {
  std::set<int64_t> senders;
  for (int64_t of = part + 1; of < rows.parts().count(); ++of)
    if (rows.takes(part, of)) senders.insert(*Way(rows).before(part, of));
  return senders;
}

/// Gradients of keys and values go to who has them.
void attend_backward(const QueryRows& rows, std::vector<std::optional<PartOfRing>>& work, const BackwardInputs& inputs,
                     KeyGradients& of_keys, KeyGradients& of_values) {
  rows.for_each_block_here([&](int64_t part, int64_t of) {
    auto& [passing, halves] = *work[static_cast<size_t>(part)];
    const auto [key, value] = passing.next();
    const auto computed = rows.computed_by(part);
    std::array<Tensor, 2> key_pieces, value_pieces;
    for (size_t i = 0; i < computed.size(); ++i)
      if (computed[i].meets(of))
        std::tie(key_pieces[i], value_pieces[i]) =
            halves[i]->add_backward(inputs.of(part, i), key, value, rows.parts().positions(of));
    of_keys.send_block(part, of, key_pieces), of_values.send_block(part, of, value_pieces);
    if (of != part) return;
    // Whoever hands on later keys has sent these gradients before.
    for (const int64_t from : senders_of_later_keys(rows, part)) of_keys.expect(from, of), of_values.expect(from, of);
    passing.go_on();
  });
}

struct Ring : torch::autograd::Function<Ring> {
  static Tensor forward(AutogradContext* context, const Tensor& query, const Tensor& key, const Tensor& value,
                        const RowInputs* beside, Balance balance) {
    const at::AutoDispatchBelowAutograd below;
    const QueryRows rows(spec_of(query), balance);
    const auto queries = rows.spread(query, kQuery);
    const RowInputsOfHalves theirs(rows, *beside);
    auto work = parts_of(rows, queries, theirs, key, value);
    attend(rows, work);
    Halves outputs(queries.size()), log_sums(queries.size());
    rows.for_each_here([&](int64_t part) {
      const auto at = static_cast<size_t>(part);
      for (size_t i = 0; i < 2; ++i)
        if (const auto half = std::exchange(work[at]->halves[i], {}))
          std::tie(outputs[at][i], log_sums[at][i]) = half->result();
    });
    auto output = rows.collect(outputs, spec_like(spec_of(query), value.size(3), query.scalar_type()), kOutput);
    variable_list saved{key, value, output};
    rows.keep(queries, true, saved), rows.keep(outputs, false, saved), rows.keep(log_sums, true, saved);
    theirs.keep(rows, saved);
    context->save_for_backward(saved);
    context->saved_data["query"] =
        c10::IValue::make_capsule(c10::make_intrusive<QueryOfRing>(spec_of(query), balance, theirs));
    return output;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    if (own_ops::is_differentiated_again())
      fail<BadInput>("attention in a ring has no second derivative; use context_parallel_rotate_method \"allgather\"");
    const at::AutoDispatchBelowAutograd below;
    const auto of = c10::static_intrusive_pointer_cast<QueryOfRing>(context->saved_data["query"].toCapsule());
    const auto saved = context->get_saved_variables();
    const auto &key = saved[0], &value = saved[1];
    const auto gradient = redistribute_values(gradients[0], of->spec->layout, "redistribute");
    const auto module = RunContext::current().module();
    const PhaseScope phase(Phase::kReduce);  // ops that only some meshes have
    const QueryRows rows(*of->spec, of->balance, module);
    const Tensor* next = saved.data() + 3;
    const auto queries = rows.restored({}, next), outputs = rows.restored(saved[2], next);
    const BackwardInputs inputs{rows.spread(gradient, kGradient), queries, outputs, rows.restored({}, next)};
    const RowInputsOfHalves beside(rows, of->has_places, of->dropout, next);
    const bool canonical = spec_of(gradient).layout.mesh().world().canonical();
    KeyGradients of_keys(rows, canonical, kKeyGradient), of_values(rows, canonical, kValueGradient);
    auto work = parts_of(rows, queries, beside, key, value);
    attend_backward(rows, work, inputs, of_keys, of_values);
    Halves of_query(queries.size());
    std::vector<Tensor> of_key(queries.size()), of_value(queries.size());
    rows.for_each_here([&](int64_t part) {
      const auto at = static_cast<size_t>(part);
      for (size_t i = 0; i < 2; ++i)
        if (const auto half = std::exchange(work[at]->halves[i], {})) of_query[at][i] = half->query_gradient();
      of_key[at] = of_keys.joined(part).to(key.scalar_type());
      of_value[at] = of_values.joined(part).to(value.scalar_type());
    });
    const auto& parts = rows.parts();
    return {rows.collect(of_query, of->spec, kQueryGradient),
            parts.joined(of_key, &spec_of(key)),
            parts.joined(of_value, &spec_of(value)),
            {},
            {}};
  }
};

}  // namespace

Tensor ring_attention(const Tensor& query, const Tensor& key, const Tensor& value, const AttentionOptions& options,
                      bool balanced) {
  const auto own = finished(query);
  const auto beside = row_inputs(own, options);
  return Ring::apply(own, finished(key), finished(value), &beside, balanced ? Balance::kHeadTail : Balance::kNone);
}

}  // namespace lockstep::trainer
