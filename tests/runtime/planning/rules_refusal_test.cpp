// Every row of the op table refuses what LibTorch refuses, on any layouts.
#include <gtest/gtest.h>

#include "core/error.h"
#include "fuzz/cases/tensors.h"
#include "fuzz/trials/rule_properties.h"
#include "runtime/own_ops/mesh_ops.h"
#include "runtime/planning/rules/built_in_rules.h"
#include "tests/support/mutants.h"
#include "tests/support/test_name.h"

namespace lockstep::testing {
namespace {

/// Ops that draw have one operand, of any sizes, and no peer in LibTorch.
std::vector<OpCase> refusing_cases() {
  auto all = composite_cases();
  all.insert(all.end(), op_cases().begin(), op_cases().end());
  std::erase_if(all,
                [](const OpCase& op_case) { return op_case.is(OpCase::kOwnPeer) || op_case.is(OpCase::kFactory); });
  return all;
}

constexpr int kCases = 120;

class RulesRefusal : public ::testing::TestWithParam<OpCase> {};

/// Every case is refused or compared. Of ops of several operands some have to be refused.
TEST_P(RulesRefusal, RefusesWhatOneDeviceRefuses) {
  const auto& op = GetParam().op;
  const int cases = case_count(kCases);
  size_t operands = 0;
  const auto refused = refused_cases()[op], compared = compared_cases()[op];
  const auto failure =
      failure_of(op + "/refusals", cases, [&] { operands = refuses_as_one_device(GetParam(), built_in_rules()); });
  if (!failure.empty()) FAIL() << failure;
  EXPECT_EQ(refused_cases()[op] - refused + compared_cases()[op] - compared, cases);
  const bool takes_any_sizes = op == "isin.Tensor_Tensor";
  if (operands > 1 && !takes_any_sizes) EXPECT_GT(refused_cases()[op], refused) << "what fits is no negative case";
}

INSTANTIATE_TEST_SUITE_P(Rows, RulesRefusal, ::testing::ValuesIn(refusing_cases()), test_name);

/// Sizes that a row makes up instead of asking LibTorch.
std::vector<ResultShape> unchecked_sizes(const Call& call) {
  return {{{call.dims(0), call.dims(1)}, {}, call.operand_dtypes[0]}};
}

void product_of_anything(const LocalCall& call, Stack& stack) {
  stack = {at::zeros(call.plan.results[0]->local_sizes[call.index])};
}

TEST(RulesRefusals, NoticeARowThatDoesNotCheck) {
  auto rule = *built_in_rules()->find("mm");
  rule.dims = "...->...", rule.shapes = unchecked_sizes, rule.local = product_of_anything;
  const auto rules = built_in_rules()->with(rule);
  const auto& mm = *std::find_if(op_cases().begin(), op_cases().end(), [](auto& c) { return c.op == "mm"; });
  expect_noticed("a product of any sizes", kCases, [&] { refuses_as_one_device(mm, rules); });
}

/// Everything on tp=2, replicated or cut where the test says.
class OwnOps : public ::testing::Test {
 protected:
  at::Tensor on_mesh(c10::IntArrayRef sizes, const char* layout = "[tp=R]") {
    return distribute(exact_tensor(sizes), Layout::parse(mesh_, layout));
  }
  template <class Call>
  void expect_refused(const Call& call, const char* text) {
    try {
      call();
      ADD_FAILURE() << "accepted, expected: " << text;
    } catch (const BadInput& error) {
      EXPECT_STREQ(error.what(), text);
    }
  }
  std::unique_ptr<World> world_ = simulated_world({{"tp", 2}});
  const Mesh& mesh_ = world_->mesh("tp=2");
};

/// LibTorch would broadcast it into place; taken for a whole one, its cut was that of another dimension.
TEST_F(OwnOps, AGradientOfASliceIsNotBroadcast) {
  expect_refused(
      [&] {
        at::select_backward(on_mesh({6}, "[tp=S(0)]"), {1, 1, 6}, 0, 0);
      },
      "select_backward: a gradient [6] does not fit an input [1, 1, 6] without or along dimension 0; expected "
      "[1, 6]");
  expect_refused(
      [&] {
        at::slice_backward(on_mesh({6}, "[tp=S(0)]"), {2, 6}, 0, 0, 1, 1);
      },
      "slice_backward: a gradient [6] does not fit an input [2, 6] without or along dimension 0; expected "
      "[2, 6]");
}

TEST_F(OwnOps, TakeOnlyWhatFits) {
  expect_refused(
      [&] {
        mesh_ops::rms_norm(on_mesh({2, 4}), on_mesh({3}), 1e-5);
      },
      "mesh::rms_norm: dimension 0 of operand 1 has 3 elements, and operand 0 has 4 there (...D,D->...D,...)");
  expect_refused([&] { mesh_ops::rms_norm(on_mesh({}), on_mesh({1}), 1e-5); },
                 "mesh::rms_norm: operand 0 has 0 dimensions, expected at least 1 (...D,D->...D,...)");
  expect_refused(
      [&] {
        mesh_ops::swiglu(on_mesh({2, 3, 4}));
      },
      "mesh::swiglu: the last dimension but one holds a gate and what it gates, so it has 2 entries, not 3");
  expect_refused([&] { mesh_ops::swiglu(on_mesh({4})); },
                 "mesh::swiglu: operand 0 has 1 dimensions, expected at least 2 (...Tw->...w)");
  expect_refused(
      [&] {
        mesh_ops::rotate_pairs(on_mesh({1, 2, 4, 6}, "[tp=S(2)]"), on_mesh({8, 3}), on_mesh({8, 3}));
      },
      "mesh::rotate_pairs: dimension 0 of operand 1 has 8 elements, and operand 0 has 4 there "
      "(bhlD,lP,lP->bhlD)");
  expect_refused(
      [&] {
        mesh_ops::rotate_pairs(on_mesh({1, 2, 4, 6}), on_mesh({4, 2}), on_mesh({4, 2}));
      },
      "mesh::rotate_pairs: heads of size 6 need tables of half as many columns, not 2");
  expect_refused(
      [&] {
        mesh_ops::weight_gradient(on_mesh({2, 3, 4}), on_mesh({2, 5, 4}));
      },
      "mesh::weight_gradient: dimension 1 of operand 1 has 5 elements, and operand 0 has 3 there "
      "(...n,...k->nk)");
  expect_refused(
      [&] {
        at::scaled_dot_product_attention(on_mesh({1, 2, 3, 4}), on_mesh({1, 2, 3, 4}), on_mesh({2, 3, 4}));
      },
      "mesh::attention: query, key and value should be [batch, heads, length, size]; operand 2 has 3 "
      "dimensions");
  expect_refused(
      [&] {
        mesh_ops::swiglu_backward(on_mesh({2, 4}), on_mesh({2, 3, 4}));
      },
      "mesh::swiglu_backward: the last dimension but one holds a gate and what it gates, so it has 2 entries, not 3");
  expect_refused(
      [&] {
        at::layer_norm(on_mesh({2, 4}), {4}, on_mesh({4}), on_mesh({1, 4}));
      },
      "layer_norm: an input [2, 4], a weight [4] and a bias [1, 4] do not fit a normalized shape [4]");
  expect_refused(
      [&] {
        at::rms_norm(on_mesh({2, 4}), {3}, on_mesh({4}));
      },
      "rms_norm: an input [2, 4], a weight [4] and a bias (none) do not fit a normalized shape [3]");
  const auto heads = on_mesh({1, 2, 3, 4});
  EXPECT_EQ(std::get<0>(mesh_ops::attention(on_mesh({1, 0, 3, 4}), heads, heads, false, 1)).size(1), 0)
      << "no heads, no groups";
  expect_refused(
      [&] {
        at::scaled_dot_product_attention(on_mesh({1, 4, 3, 4}), heads, heads);
      },
      "attention: 4 heads of the query and 2 of the key are groups only with enable_gqa");
  expect_refused(
      [&] {
        mesh_ops::attention_backward(on_mesh({1, 2, 3, 5}), heads, heads, heads, heads, on_mesh({1, 2, 3}), false, 1);
      },
      "mesh::attention_backward: operand 0 has sizes [1, 2, 3, 5], its query and value have an output of "
      "[1, 2, 3, 4]");
  expect_refused(
      [&] {
        mesh_ops::document_attention(heads, heads, heads, on_mesh({1, 3}), {}, 1);
      },
      "mesh::document_attention: places should be Long [1, 3], one of each query row; they are Float [1, 3]");
  expect_refused(
      [&] {
        const auto places = distribute(at::tensor({0, 1, 3}, at::kLong).view({1, 3}), Layout::replicated(mesh_));
        mesh_ops::document_attention(heads, heads, heads, places, {}, 1);
      },
      "attention in documents: row 2 of sample 0 (of those here) has place 3 in its document, expected one from 0 to "
      "2");
  expect_refused([&] { at::embedding(on_mesh({8}), distribute(at::arange(4), Layout::replicated(mesh_))); },
                 "embedding: operand 0 has 1 dimensions, expected 2 (vd,...->...d)");
}

/// LibTorch's own expand makes a tensor of it.
TEST_F(OwnOps, ASizeBelowZeroIsNone) { EXPECT_THROW(on_mesh({}).expand({1, 0, -1}), BadInput); }

TEST_F(OwnOps, WriteOnlyWhatFits) {
  const mesh_ops::AdamwOptions options{1e-3, 0.9, 0.95, 1e-8, 0.1, 0.1, 0.05};
  const auto parameter = on_mesh({4}, "[tp=S(0)]"), gradient = on_mesh({4}, "[tp=S(0)]");
  expect_refused(
      [&] { mesh_ops::adamw(parameter, gradient, on_mesh({2}, "[tp=S(0)]"), gradient, options); },
      "mesh::adamw: dimension 0 of operand 2 has 2 elements, and operand 0 has 4 there (...,...,...,...->...)");
  EXPECT_THROW(mesh_ops::adamw(parameter, gradient, on_mesh({4}), gradient.clone(), options), BadInput)
      << "the mean would have to move";
  EXPECT_THROW(mesh_ops::adamw(parameter, gradient, gradient.clone(), on_mesh({4}), options), BadInput)
      << "the square would have to move";
}

}  // namespace
}  // namespace lockstep::testing
