// Ops that a program makes with TORCH_LIBRARY: their rules come from outside, and are checked as the built-in ones are.
#include <ATen/Functions.h>
#include <gtest/gtest.h>
#include <torch/library.h>

#include "core/error.h"
#include "fuzz/cases/tensors.h"
#include "fuzz/checks/op_checks.h"
#include "fuzz/search/search.h"
#include "runtime/planning/rules/built_in_rules.h"
#include "runtime/redistribution/gather.h"
#include "runtime/tensor/sharded_tensor.h"

namespace lockstep::testing {
namespace {

/// The largest element of each row.
at::Tensor row_tops(const at::Tensor& rows) { return rows.amax(1); }

TORCH_LIBRARY(theirs, library) { library.def("row_tops(Tensor rows) -> Tensor"); }
TORCH_LIBRARY_IMPL(theirs, CPU, library) { library.impl("row_tops", row_tops); }

std::vector<ResultShape> one_per_row(const Call& call) {
  if (call.dims(0) != 2 || call.operand_sizes[0][1] == 0) fail<BadInput>("row_tops takes rows of one element at least");
  return {{{call.operand_sizes[0][0]}, {}, call.operand_dtypes[0]}};
}

Rule rule_of(const char* dims) {
  return {.op = "theirs::row_tops",
          .family = "theirs",
          .dims = dims,
          .shapes = one_per_row,
          .canonical = Rule::Canonical::kAsIs};
}

at::Tensor call(const at::Tensor& rows) {
  static const auto op =
      c10::Dispatcher::singleton().findSchemaOrThrow("theirs::row_tops", "").typed<at::Tensor(const at::Tensor&)>();
  return op.call(rows);
}

at::Tensor on(World& world, const at::Tensor& plain, const char* layout) {
  return distribute(plain, Layout::parse(world.mesh("dp=2,tp=2"), layout));
}

TEST(OpsOfOtherLibraries, RunByARuleFromOutside) {
  World world({.rank_count = 4, .rules = built_in_rules()->with(rule_of("rC->r"))});
  const auto rows = exact_tensor({5, 6});
  for (const char* layout : {"[dp=S(0), tp=S(1)]", "[dp=S(0), tp=S(0)]", "[dp=P(sum), tp=R]"}) {
    const auto tops = call(on(world, rows, layout));
    EXPECT_TRUE(at::equal(gather(tops), rows.amax(1))) << layout;
  }
}

TEST(OpsOfOtherLibraries, WithoutARuleSayWhatToDo) {
  World world({.rank_count = 4});
  const auto rows = on(world, exact_tensor({5, 6}), "[dp=S(0), tp=R]");
  try {
    call(rows);
    FAIL() << "not refused";
  } catch (const BadInput& error) {
    EXPECT_STREQ(error.what(),
                 "theirs::row_tops has no sharding rule; give it one: World::Options::rules = "
                 "built_in_rules()->with(...), as docs/rules.md shows");
  }
}

fuzz::SearchResult search(const char* dims) {
  const OpCase how{"theirs::row_tops", OpCase::kExact, [](Inputs& in) {
                     return Stack{in.tensor({in.number(0, 6), in.number(1, 5)})};
                   }};
  fuzz::SearchOptions options;
  options.cases = 400, options.workers = 0, options.shrink_seconds = 1;
  return fuzz::search(fuzz::checks_of_row(how, built_in_rules()->with(rule_of(dims))), options);
}

TEST(OpsOfOtherLibraries, AreCheckedAsOurs) {
  const auto right = search("rC->r");
  EXPECT_TRUE(right.failures.empty()) << right.failures[0].message;
  EXPECT_GE(right.tallies.size(), 4U) << "candidates, layouts, refusals and canonical bits";
  for (const auto& tally : right.tallies) EXPECT_GT(tally.compared + tally.refused, 0) << tally.check;
  EXPECT_FALSE(search("rc->r").failures.empty()) << "a row that is cut has several tops";
}

}  // namespace
}  // namespace lockstep::testing
