// A feed-forward of experts and its gradients, as a canonical mesh of one rank runs it, beside what a program of
// LibTorch does: each expert's rows picked by index, and added to their tokens.
#include <ATen/Functions.h>
#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <fmt/format.h>

#include "runtime/context/world.h"
#include "runtime/own_ops/expert_ops.h"
#include "runtime/tensor/sharded_tensor.h"
#include "tools/bench/rows/numerics_rows.h"

namespace lockstep::bench {
namespace {

using at::Tensor;

struct Sizes {
  int64_t sequences, length, width, experts, per_token, hidden;
  int64_t tokens() const { return sequences * length; }
};
constexpr Sizes kSizes[] = {{2, 256, 256, 8, 2, 256}, {2, 256, 256, 64, 8, 128}, {16, 256, 256, 8, 2, 256}};

/// Leaves, but for the choices.
struct Layer {
  Tensor x, weights, gate, up, down, experts;

  static Layer drawn(const Sizes& s) {
    at::manual_seed(1);
    const auto scores = at::rand({s.sequences, s.length, s.experts});
    return {at::randn({s.sequences, s.length, s.width}), at::rand({s.sequences, s.length, s.per_token}),
            at::randn({s.experts, s.hidden, s.width}),   at::randn({s.experts, s.hidden, s.width}),
            at::randn({s.experts, s.width, s.hidden}),   std::get<1>(at::topk(scores, s.per_token))};
  }
  template <class Place>
  Layer on(const Place& place) const {
    Layer there{place(x), place(weights), place(gate), place(up), place(down), place(experts)};
    for (auto* leaf : {&there.x, &there.weights, &there.gate, &there.up, &there.down}) leaf->requires_grad_();
    return there;
  }
};

void run_on_mesh(const Layer& l, const Tensor& gradient, int64_t count) {
  const auto rows = mesh_ops::expert_rows(l.x, l.experts, {}, count);
  const auto hidden = at::mul(at::silu(mesh_ops::expert_linear(rows, l.gate)), mesh_ops::expert_linear(rows, l.up));
  mesh_ops::expert_sums(mesh_ops::expert_linear(hidden, l.down), l.experts, l.weights).backward(gradient);
}

void run_plain(const Layer& l, const Tensor& gradient, int64_t count) {
  const auto x = l.x.flatten(0, 1), weights = l.weights.flatten(), experts = l.experts.flatten();
  auto sum = at::zeros_like(x);
  for (int64_t e = 0; e < count; ++e) {
    const auto slots = at::nonzero(experts == e).squeeze(-1);
    const auto tokens = at::div(slots, l.experts.size(-1), "floor");
    const auto rows = x.index_select(0, tokens);
    const auto hidden = at::silu(at::linear(rows, l.gate[e])) * at::linear(rows, l.up[e]);
    const auto given = at::linear(hidden, l.down[e]) * weights.index_select(0, slots).unsqueeze(-1);
    sum = sum.index_add(0, tokens, given);
  }
  sum.view_as(l.x).backward(gradient);
}

NumericsCase case_of(const Sizes& s) {
  const auto name =
      fmt::format("experts_fwd_bwd_{}x{}_{}of{}x{}", s.tokens(), s.width, s.per_token, s.experts, s.hidden);
  return {name, [s, name](const PairedOptions& options) {
            at::set_num_threads(1);
            World world{{.rank_count = 1, .numerics = Numerics::kCanonical}};
            const auto& mesh = world.mesh({{"tp", 1}});
            const auto place = [&](const Tensor& plain) { return distribute(plain, Layout::replicated(mesh)); };
            const auto drawn = Layer::drawn(s);
            const auto here = drawn.on(place), plain = drawn.on([](const Tensor&t) { return t.clone(); });
            const auto gradient = at::randn_like(drawn.x), gradient_here = place(gradient);
            const auto timing = time_in_pairs([&] { run_on_mesh(here, gradient_here, s.experts); },
                                              [&] { run_plain(plain, gradient, s.experts); }, options);
            return make_row(name, timing, "LibTorch", "ms", 1e3);
          }};
}

}  // namespace

std::vector<NumericsCase> expert_cases() {
  std::vector<NumericsCase> all;
  for (const auto& sizes : kSizes) all.push_back(case_of(sizes));
  return all;
}

}  // namespace lockstep::bench
