// Every piece of code in docs/api.md, as a program (tools/test_examples compares them).
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include <cstdio>

#include "core/error.h"
#include "runtime/context/observer.h"
#include "runtime/context/random.h"
#include "runtime/context/scopes.h"
#include "runtime/context/world.h"
#include "runtime/dispatch/plain_modules.h"
#include "runtime/own_ops/expert_ops.h"
#include "runtime/own_ops/mesh_ops.h"
#include "runtime/planning/rule_set.h"
#include "runtime/planning/rules/built_in_rules.h"
#include "runtime/redistribution/gather.h"
#include "runtime/redistribution/redistribute.h"
#include "runtime/tensor/sharded_tensor.h"
#include "runtime/transfer/transfer.h"

using namespace lockstep;

namespace {

int failures = 0;

void check(bool holds, const char* what) {
  std::printf("%-24s %s\n", what, holds ? "as documented" : "OTHERWISE");
  failures += holds ? 0 : 1;
}

at::Tensor numbers() { return at::arange(24).to(at::kFloat).reshape({4, 6}); }

void worlds() {
  World world({.rank_count = 4, .policy = {.strict = true}});
  const Mesh& mesh = world.mesh("dp=2,tp=2");
  const Mesh& half = mesh.submesh("dp", 1);
  check(mesh.rank_count() == 4 && half.ranks() == std::vector<int>{2, 3}, "context/world.h");
}

void layouts() {
  World world({.rank_count = 4});
  const Mesh& mesh = world.mesh("dp=2,tp=2");
  const auto layout = Layout::parse(mesh, "[dp=S(0), tp=P(sum)]");
  const auto reduced = layout.with(1, Placement::replicate());
  check(reduced.text() == "[dp=S(0), tp=R]" && layout.any_partial(), "tensor/layout.h");
}

void tensors() {
  World world({.rank_count = 2});
  const Mesh& mesh = world.mesh("tp=2");
  const at::Tensor x = distribute(numbers(), Layout::parse(mesh, "[tp=S(1)]"));
  const at::Tensor y = (x * 2).sum(0);
  check(y.sizes() == at::IntArrayRef({6}) && layout_of(y).text() == "[tp=S(0)]", "tensor/sharded_tensor.h");
}

void gathering() {
  World world({.rank_count = 2});
  const at::Tensor x = distribute(numbers(), Layout::parse(world.mesh("tp=2"), "[tp=S(0)]"));
  const at::Tensor whole = gather(x);
  check(at::equal(whole, numbers()), "redistribution/gather.h");
}

void moving() {
  World world({.rank_count = 2});
  const Mesh& mesh = world.mesh("tp=2");
  const at::Tensor x = distribute(numbers(), Layout::parse(mesh, "[tp=S(0)]"));
  const at::Tensor y = redistribute(x, Layout::parse(mesh, "[tp=S(1)]"));
  y.add_(1);  // y has bytes of its own: x stays as it is
  check(at::equal(gather(x), numbers()) && at::equal(gather(y), numbers() + 1), "redistribution/redistribute.h");
}

void transferring() {
  World world({.rank_count = 4});
  const Mesh& mesh = world.mesh("pp=2,tp=2");
  const at::Tensor x = distribute(numbers(), Layout::parse(mesh.submesh("pp", 0), "[tp=S(0)]"));
  const at::Tensor y = transfer(x, mesh.submesh("pp", 1));
  check(at::equal(gather(y), numbers()), "transfer/transfer.h");
}

void watching() {
  World world({.rank_count = 2});
  const at::Tensor x = distribute(numbers(), Layout::parse(world.mesh("tp=2"), "[tp=S(0)]"));
  struct Names : Observer {
    void before_op(const OpEvent& event) override { ops.push_back(event.id.op); }
    std::vector<std::string> ops;
  } names;
  {
    const ObserverScope scope(world.observers(), names);
    at::exp(x).sum();
  }
  check(names.ops == std::vector<std::string>{"exp", "sum"}, "context/observer.h");
}

void drawing() {
  World world({.rank_count = 2});
  const Mesh& mesh = world.mesh("tp=2");
  const auto cut =
      draw(Layout::parse(mesh, "[tp=S(0)]"), {4, 6}, at::kFloat, rng::normal(0, 1), /*seed=*/7, /*stream=*/1);
  const auto whole = draw(Layout::replicated(mesh), {4, 6}, at::kFloat, rng::normal(0, 1), 7, 1);
  check(at::equal(gather(cut), gather(whole)), "context/random.h");
}

void saying() {
  World world({.rank_count = 2});
  const at::Tensor ones = at::ones({4, 6});
  const auto dropped = [&](const char* layout) {
    RunContext::current().begin_microbatch(/*step=*/1, /*microbatch=*/0);
    const RandomScope random(/*seed=*/7);
    const ModuleScope module("layers.0");
    return gather(at::dropout(distribute(ones, Layout::parse(world.mesh("tp=2"), layout)), 0.5, true));
  };
  const at::Tensor cut = dropped("[tp=S(0)]"), whole = dropped("[tp=R]");
  check(at::equal(cut, whole) && !at::equal(cut, ones), "context/scopes.h");
}

void own_rules() {
  const Rule rule{"deg2rad", "pointwise", "...->...", "-"};
  World world({.rank_count = 2, .rules = built_in_rules()->with(rule)});
  const at::Tensor x = distribute(numbers() / 24, Layout::parse(world.mesh("tp=2"), "[tp=S(0)]"));
  const at::Tensor y = at::deg2rad(x);
  check(at::equal(gather(y), at::deg2rad(numbers() / 24)), "planning/rule_set.h");
}

void modules() {
  World world({.rank_count = 2});
  const Mesh& mesh = world.mesh("tp=2");
  at::Tensor weight;
  {
    const MeshConstruction here(mesh, /*seed=*/7);
    weight = at::empty({4, 6}).uniform_(-1, 1).requires_grad_();  // as a module's constructor does
  }
  shard_parameters(std::vector<NamedParameter>{{"up.weight", weight}}, mesh,
                   std::vector<ParameterLayout>{{"*.weight", "[tp=S(0)]"}});
  check(layout_of(weight).text() == "[tp=S(0)]", "dispatch/plain_modules.h");
}

void own_ops() {
  World world({.rank_count = 2});
  const at::Tensor both = numbers().reshape({3, 2, 4});  // a gate and what it gates, side by side
  const at::Tensor plain = mesh_ops::swiglu(both);
  const at::Tensor y = mesh_ops::swiglu(distribute(both, Layout::parse(world.mesh("tp=2"), "[tp=S(0)]")));
  check(at::equal(gather(y), plain), "own_ops/mesh_ops.h");
}

void experts() {
  World world({.rank_count = 2});
  const Mesh& mesh = world.mesh("dp=2");
  const at::Tensor x = distribute(numbers().reshape({2, 3, 4}), Layout::parse(mesh, "[dp=S(0)]"));
  const at::Tensor chosen = distribute(at::arange(6).remainder(4).reshape({2, 3, 1}), layout_of(x));
  const at::Tensor rows = mesh_ops::expert_rows(x, chosen, {}, 4);  // [2, 4, 3, 4], of which 6 rows of 4 are stored
  const at::Tensor moved = redistribute(rows, Layout::parse(mesh, "[dp=G(1)]"));
  const at::Tensor weight = distribute(at::ones({4, 5, 4}), Layout::parse(mesh, "[dp=S(0)]"));
  const at::Tensor back = redistribute(mesh_ops::expert_linear(moved, weight), layout_of(rows));
  const at::Tensor y = mesh_ops::expert_sums(back, chosen, {});
  check(at::equal(gather(y), gather(x).sum(2, true).expand({2, 3, 5})), "own_ops/expert_ops.h");
}

void errors() {
  World world({.rank_count = 2});
  std::string text;
  try {
    world.mesh("tp=3");
  } catch (const BadInput& error) {  // also Inconsistency, TransportError, FileError; all are Error
    text = error.what();
  }
  check(text == "mesh tp=3 needs 3 ranks, there are 2", "core/error.h");
}

}  // namespace

int main() {
  worlds(), layouts(), tensors(), gathering(), moving(), transferring(), watching(), drawing(), saying(), own_rules(),
      modules(), own_ops(), experts(), errors();
  return failures == 0 ? 0 : 1;
}
