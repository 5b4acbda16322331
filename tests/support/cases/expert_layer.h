#pragma once
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include <vector>

#include "core/mesh_text.h"
#include "fuzz/cases/tensors.h"
#include "runtime/context/scopes.h"
#include "runtime/context/world.h"
#include "runtime/own_ops/expert_ops.h"
#include "runtime/redistribution/gather.h"
#include "runtime/redistribution/redistribute.h"
#include "runtime/tensor/sharded_tensor.h"

/// A feed-forward of experts with its gradients, on plain tensors and on meshes that have it cut in one way or another.
namespace lockstep::testing {

using at::Tensor;

inline constexpr int64_t kSamples = 4, kLength = 64, kWidth = 64, kHidden = 128, kExperts = 4, kChoices = 2;

/// Expert 0 is everyone's first choice, one token alone chose expert 2, nobody expert 3; some have one choice only.
inline Tensor choices() {
  auto experts = at::zeros({kSamples, kLength, kChoices}, c10::kLong);
  experts.select(2, 1).fill_(1);
  experts[1][5][1] = 2;
  experts.select(1, 7).select(1, 1).fill_(-1);
  return experts;
}

struct ExpertValues {
  Tensor x, weights, gate, up, down, experts = choices();

  static ExpertValues drawn() {
    at::manual_seed(7);
    const auto draw = [](std::vector<int64_t> sizes) { return at::randn(sizes) * 0.3; };
    return {draw({kSamples, kLength, kWidth}), at::rand({kSamples, kLength, kChoices}),
            draw({kExperts, kHidden, kWidth}), draw({kExperts, kHidden, kWidth}), draw({kExperts, kWidth, kHidden})};
  }
  std::vector<Tensor> differentiated() const { return {x, weights, gate, up, down}; }
};

/// How a mesh has it: tokens and their choices, rows where experts compute, gate and up, down.
struct ExpertPlace {
  const char *mesh, *tokens, *rows, *in, *out;
};

inline constexpr ExpertPlace kOneRank{"dp=1", "[]", "[]", "[]", "[]"};
inline constexpr ExpertPlace kPlaces[] = {
    {"dp=2", "[dp=S(0)]", "[dp=G(0)]", "[]", "[]"},
    {"dp=2", "[dp=S(0)]", "[dp=G(1)]", "[dp=S(0)]", "[dp=S(0)]"},
    {"dp=4", "[dp=S(0)]", "[dp=G(1)]", "[dp=S(0)]", "[dp=S(0)]"},
    {"tp=2", "[]", "[]", "[tp=S(1)]", "[tp=S(2)]"},
    {"cp=2", "[cp=S(1)]", "[cp=G(2)]", "[]", "[]"},
    {"cp=2", "[cp=S(1)]", "[cp=G(1)]", "[cp=S(0)]", "[cp=S(0)]"},
    {"dp=2,cp=2", "[dp=S(0), cp=S(1)]", "[dp=G(1), cp=G(1)]", "[dp=S(0), cp=S(0)]", "[dp=S(0), cp=S(0)]"},
    {"dp=2,cp=2", "[dp=S(0), cp=S(1)]", "[dp=G(0), cp=G(1)]", "[cp=S(0)]", "[cp=S(0)]"},
    {"dp=2,cp=2", "[dp=S(0), cp=S(1)]", "[dp=G(1), cp=G(2)]", "[dp=S(0)]", "[dp=S(0)]"},
    {"dp=2,tp=2", "[dp=S(0)]", "[dp=G(1)]", "[dp=S(0), tp=S(1)]", "[dp=S(0), tp=S(2)]"},
    {"dp=2,tp=2", "[dp=S(0), tp=S(1)]", "[dp=G(1), tp=G(1)]", "[dp=S(0), tp=S(0)]", "[dp=S(0), tp=S(0)]"},
    {"dp=2,cp=2,tp=2", "[dp=S(0), cp=S(1)]", "[dp=G(0), cp=G(1)]", "[cp=S(0), tp=S(1)]", "[cp=S(0), tp=S(2)]"},
};

/// A gated feed-forward of experts: what it gives, and the gradients of ExpertValues::differentiated().
template <class Move>
std::vector<Tensor> computed(const ExpertValues& v, const Move& move) {
  auto leaves = v.differentiated();
  for (auto& leaf : leaves) leaf.requires_grad_(true);
  const auto rows = move(mesh_ops::expert_rows(leaves[0], v.experts, {}, kExperts), /*to_experts=*/true);
  const auto gate = at::silu(mesh_ops::expert_linear(rows, leaves[2]));
  const auto hidden = at::mul(gate, mesh_ops::expert_linear(rows, leaves[3]));
  const auto back = move(mesh_ops::expert_linear(hidden, leaves[4]), false);
  const auto y = mesh_ops::expert_sums(back, v.experts, leaves[1]);
  const auto gradient = at::mul(y, y).detach();
  y.backward(gradient);
  std::vector<Tensor> results{y.detach()};
  for (const auto& leaf : leaves) results.push_back(leaf.grad());
  return results;
}

/// Of the world's mesh, whole.
inline std::vector<Tensor> on_mesh(const ExpertValues& v, const ExpertPlace& place, World& world) {
  const auto& mesh = world.mesh(place.mesh);
  const BatchScope batch({0, kSamples});
  const auto layout = [&mesh](const char* text) { return Layout::parse(mesh, text); };
  const auto tokens = layout(place.tokens), rows = layout(place.rows);
  const auto back = [&] {  // experts' rows where the tokens are
    auto placements = tokens.placements();
    for (auto& placement : placements)
      if (placement.is_shard()) placement.dim = placement.dim == 0 ? 0 : 2;
    return Layout(mesh, placements);
  }();
  ExpertValues here{distribute(v.x, tokens),
                    distribute(v.weights, tokens),
                    distribute(v.gate, layout(place.in)),
                    distribute(v.up, layout(place.in)),
                    distribute(v.down, layout(place.out)),
                    distribute(v.experts, tokens)};
  auto results = computed(here, [&](const Tensor& t, bool to) { return redistribute(t, to ? rows : back); });
  for (auto& result : results) result = gather(result);
  return results;
}

inline std::unique_ptr<World> world_of(const ExpertPlace& place, lockstep::Numerics numerics) {
  World::Options options;
  options.numerics = numerics;
  return simulated_world(parse_mesh_axes(place.mesh), options);
}

}  // namespace lockstep::testing
