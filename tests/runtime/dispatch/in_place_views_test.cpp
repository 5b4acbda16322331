// squeeze_, t_ and their like: the tensor itself gets other sizes, its memory and the views of it stay as they are.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include "fuzz/calls/sharded_calls.h"
#include "fuzz/cases/tensors.h"

namespace lockstep::testing {
namespace {

class InPlaceViews : public ::testing::TestWithParam<const char*> {
 protected:
  at::Tensor on_mesh(const at::Tensor& plain) const {
    return distribute(plain, Layout::parse(world_->mesh("tp=2"), GetParam()));
  }

  std::unique_ptr<World> world_ = simulated_world({{"tp", 2}});
};

void expect_equal(const at::Tensor& actual, const at::Tensor& expected) {
  EXPECT_EQ(difference(actual, expected, {}, true), "");
}

TEST_P(InPlaceViews, LeaveOlderViewsAsTheyAre) {
  auto plain = exact_tensor({4, 6});
  auto x = on_mesh(plain);
  auto row = x.select(0, 0), plain_row = plain.select(0, 0);
  x.t_(), plain.t_();
  x.add_(1), plain.add_(1);
  expect_equal(row, plain_row);
  row.mul_(2), plain_row.mul_(2);
  expect_equal(x, plain);
}

TEST_P(InPlaceViews, LeaveViewsOfOlderViewsAsTheyAre) {
  auto plain = exact_tensor({4, 1, 6});
  auto x = on_mesh(plain);
  auto rows = x.narrow(0, 1, 2), plain_rows = plain.narrow(0, 1, 2);
  auto row = rows.select(0, 1), plain_row = plain_rows.select(0, 1);
  x.squeeze_(), plain.squeeze_();
  x.mul_(3), plain.mul_(3);
  expect_equal(row, plain_row);
  row.add_(5), plain_row.add_(5);
  expect_equal(rows, plain_rows);
  expect_equal(x, plain);
}

INSTANTIATE_TEST_SUITE_P(Layouts, InPlaceViews, ::testing::Values("[tp=R]", "[tp=S(0)]"),
                         [](const auto& each) { return std::string(each.index == 0 ? "Whole" : "Cut"); });

}  // namespace
}  // namespace lockstep::testing
