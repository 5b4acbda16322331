// Views, reductions and rows of one operand have arguments instead of operands to be wrong: what LibTorch refuses, a
// mesh refuses, however its tensors lie.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include <set>
#include <string_view>

#include "fuzz/calls/sharded_calls.h"
#include "fuzz/cases/tensors.h"
#include "runtime/planning/rules/built_in_rules.h"

namespace lockstep::testing {
namespace {

struct WrongCall {
  const char* op;  ///< as its row is named
  std::function<void(const at::Tensor& x)> call;
};

/// On x of sizes {4, 6}.
const std::vector<WrongCall>& wrong_calls() {
  static const std::vector<WrongCall> all = {
      {"_log_softmax", [](auto& x) { at::_log_softmax(x, 2, false); }},
      {"_log_softmax", [](auto& x) { at::_log_softmax(x, -3, false); }},
      {"_softmax", [](auto& x) { at::_softmax(x, 2, false); }},
      {"_unsafe_view",
       [](auto& x) {
         at::_unsafe_view(x, {5, 5});
       }},
      {"_unsafe_view",
       [](auto& x) {
         at::_unsafe_view(x, {-1, -1});
       }},
      {"view",
       [](auto& x) {
         x.view({2, 13});
       }},
      {"view",
       [](auto& x) {
         x.view({-1, 5});
       }},
      {"view",
       [](auto& x) {
         x.view({-2, 12});
       }},
      {"view", [](auto& x) { x.t().view({24}); }},
      {"amax", [](auto& x) { at::amax(x, {2}); }},
      {"amax",
       [](auto& x) {
         at::amax(x, {0, 0});
       }},
      {"amax", [](auto& x) { at::amax(x.narrow(0, 0, 0), {0}); }},
      {"mean.dim", [](auto& x) { at::mean(x, c10::IntArrayRef({-3})); }},
      {"mean.dim",
       [](auto& x) {
         at::mean(x, c10::IntArrayRef({1, -1}));
       }},
      {"mean", [](auto& x) { at::mean(x.to(at::kLong)); }},
      {"sum.dim_IntList", [](auto& x) { at::sum(x, c10::IntArrayRef({2})); }},
      {"sum.dim_IntList",
       [](auto& x) {
         at::sum(x, c10::IntArrayRef({0, -2}));
       }},
      {"expand",
       [](auto& x) {
         x.expand({4, 12});
       }},
      {"expand", [](auto& x) { x.expand({6}); }},
      {"expand",
       [](auto& x) {
         x.expand({-1, 4, 6});
       }},
      {"permute", [](auto& x) { x.permute({0}); }},
      {"permute",
       [](auto& x) {
         x.permute({0, 0});
       }},
      {"permute",
       [](auto& x) {
         x.permute({0, 2});
       }},
      {"select.int", [](auto& x) { x.select(0, 4); }},
      {"select.int", [](auto& x) { x.select(1, -7); }},
      {"select.int", [](auto& x) { x.select(2, 0); }},
      {"select_backward",
       [](auto& x) {
         at::select_backward(x, {3, 4, 6}, 0, 3);
       }},
      {"select_backward",
       [](auto& x) {
         at::select_backward(x, {3, 4, 6}, 3, 0);
       }},
      {"slice.Tensor", [](auto& x) { x.slice(2, 0, 1); }},
      {"slice.Tensor", [](auto& x) { x.slice(0, 0, 4, 0); }},
      {"slice.Tensor", [](auto& x) { x.slice(0, 0, 4, -1); }},
      {"slice_backward",
       [](auto& x) {
         at::slice_backward(x, {4, 9}, 2, 0, 6, 1);
       }},
      {"slice_backward",
       [](auto& x) {
         at::slice_backward(x, {4, 9}, 1, 0, 5, 1);
       }},
      {"split.Tensor", [](auto& x) { x.split(-1, 0); }},
      {"split.Tensor", [](auto& x) { x.split(0, 0); }},
      {"split.Tensor", [](auto& x) { x.split(2, 2); }},
      {"split_with_sizes",
       [](auto& x) {
         x.split_with_sizes({1, 2}, 0);
       }},
      {"split_with_sizes",
       [](auto& x) {
         x.split_with_sizes({5, -1}, 0);
       }},
      {"unsafe_split.Tensor", [](auto& x) { at::unsafe_split(x, -1, 0); }},
      {"squeeze.dim", [](auto& x) { x.squeeze(2); }},
      {"squeeze.dims",
       [](auto& x) {
         x.squeeze(c10::IntArrayRef({0, 2}));
       }},
      {"squeeze.dims",
       [](auto& x) {
         x.squeeze(c10::IntArrayRef({0, 0}));
       }},
      {"t", [](auto& x) { x.unsqueeze(0).t(); }},
      {"transpose.int", [](auto& x) { x.transpose(0, 2); }},
      {"transpose.int", [](auto& x) { x.transpose(-3, 0); }},
      {"unbind.int", [](auto& x) { x.unbind(2); }},
      {"unsqueeze", [](auto& x) { x.unsqueeze(3); }},
      {"unsqueeze", [](auto& x) { x.unsqueeze(-4); }},
      {"cat", [](auto& x) { at::cat({x}, 2); }},
      {"stack", [](auto& x) { at::stack({x}, 3); }},
      {"bitwise_not", [](auto& x) { at::bitwise_not(x); }},
  };
  return all;
}

class ArgumentRefusal : public ::testing::TestWithParam<const char*> {};

TEST_P(ArgumentRefusal, IsOneDevices) {
  const auto world = simulated_world({{"dp", 2}, {"tp", 3}});
  const auto& mesh = world->mesh("dp=2,tp=3");
  const auto plain = exact_tensor({4, 6});
  const auto x = distribute(plain, Layout::parse(mesh, GetParam()));
  int number = 0;
  for (const auto& wrong : wrong_calls()) {
    EXPECT_TRUE(refuses([&] { wrong.call(plain); })) << wrong.op << ", call " << number << ": one device takes it";
    EXPECT_TRUE(refuses([&] { wrong.call(x); })) << wrong.op << ", call " << number << ": the mesh takes it";
    ++number;
  }
}

INSTANTIATE_TEST_SUITE_P(Layouts, ArgumentRefusal,
                         ::testing::Values("[dp=R, tp=R]", "[dp=S(0), tp=S(1)]", "[dp=S(0), tp=S(0)]",
                                           "[dp=S(1), tp=P(sum)]"));

/// A row that comes later has calls here as well.
TEST(ArgumentRefusals, AreOfEveryRowOfOneOperandThatHasArguments) {
  // LibTorch believes whatever _reshape_alias is told.
  const std::set<std::string_view> takes_none = {"_reshape_alias", "alias", "clone", "detach", "squeeze", "sum"};
  std::set<std::string_view> called;
  for (const auto& wrong : wrong_calls()) called.insert(wrong.op);
  for (const auto& [name, rule] : built_in_rules()->rows()) {
    const std::string_view op = name, family = rule.family;
    const bool has_arguments = family == "view" || family == "reduction" || family == "row";
    if (!has_arguments || op.starts_with("mesh::") || op.ends_with("_backward_data") || takes_none.contains(op))
      continue;
    EXPECT_TRUE(called.contains(op)) << op << " has no wrong call";
  }
}

}  // namespace
}  // namespace lockstep::testing
