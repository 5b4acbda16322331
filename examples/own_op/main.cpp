// An op of your own, made with TORCH_LIBRARY as for any other program, gets a sharding rule in one call, and is checked
// as Lockstep checks its own: random cases on random meshes. A wrong rule is found.
#include <torch/library.h>
#include <torch/torch.h>

#include <cstdio>

#include "core/error.h"
#include "fuzz/checks/op_checks.h"
#include "fuzz/search/search.h"
#include "runtime/planning/rules/built_in_rules.h"
#include "runtime/redistribution/gather.h"
#include "runtime/redistribution/redistribute.h"
#include "runtime/tensor/sharded_tensor.h"

namespace {

using namespace lockstep;

/// A row's largest distance from the row's first element: nothing in here knows of meshes.
at::Tensor spread(const at::Tensor& rows) {
  TORCH_CHECK(rows.dim() == 2 && rows.size(1) > 0, "spread takes rows of at least one element");
  return (rows - rows.narrow(1, 0, 1)).abs().amax(1);
}

TORCH_LIBRARY(mine, library) { library.def("spread(Tensor rows) -> Tensor"); }
TORCH_LIBRARY_IMPL(mine, CPU, library) { library.impl("spread", spread); }

/// What LibTorch would ask a Meta kernel for; an op that has one needs none of this. A distance is real, of complex
/// rows, too.
std::vector<ResultShape> one_per_row(const Call& call) {
  if (call.dims(0) != 2 || call.operand_sizes[0][1] == 0) fail<BadInput>("spread takes rows of at least one element");
  return {{{call.operand_sizes[0][0]}, {}, c10::toRealValueType(call.operand_dtypes[0])}};
}

/// Rows ("r") may lie anywhere, a row's elements ("C") must be together. Nothing is rounded that depends on where it
/// lies, so that canonical numerics takes the op as it is.
constexpr Rule kRule{.op = "mine::spread",
                     .family = "mine",
                     .dims = "rC->r",
                     .shapes = one_per_row,
                     .canonical = Rule::Canonical::kAsIs};
/// As if each rank could do with its part of a row.
constexpr Rule kWrong{
    .op = "mine::spread", .family = "mine", .dims = "rc->r", .traits = Rule::kMax, .shapes = one_per_row};

at::Tensor call(const at::Tensor& rows) {
  static const auto op =
      c10::Dispatcher::singleton().findSchemaOrThrow("mine::spread", "").typed<at::Tensor(const at::Tensor&)>();
  return op.call(rows);
}

fuzz::SearchResult search(const Rule& rule) {
  using namespace lockstep::testing;
  const OpCase how{"mine::spread", OpCase::kExact, [](Inputs& in) {
                     return Stack{in.tensor({in.number(0, 6), in.number(1, 5)})};
                   }};
  fuzz::SearchOptions options;
  options.seconds = 2, options.seed = 1, options.workers = 1;
  return fuzz::search(fuzz::checks_of_row(how, built_in_rules()->with(rule)), options);
}

}  // namespace

int main() {
  World world({.rank_count = 4, .rules = built_in_rules()->with(kRule)});
  const auto rows = at::arange(24, at::kFloat).reshape({4, 6}).square();
  const auto result = call(distribute(rows, Layout::parse(world.mesh("dp=2,tp=2"), "[dp=S(0), tp=S(1)]")));
  const bool same = at::equal(gather(result), spread(rows));
  std::printf("on a mesh as on one device: %s, %s\n", same ? "yes" : "NO", spec_of(result).text().c_str());

  const auto right = search(kRule), wrong = search(kWrong);
  std::printf("the rule: %lld cases, %zu failures; a wrong one: %zu failures, such as\n%s\n",
              static_cast<long long>(right.cases), right.failures.size(), wrong.failures.size(),
              wrong.failures.empty() ? "none" : wrong.failures[0].message.c_str());
  for (const auto& failure : right.failures) std::printf("%s\n", failure.message.c_str());
  return same && right.failures.empty() && !wrong.failures.empty() ? 0 : 1;
}
