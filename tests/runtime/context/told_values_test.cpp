// What a program makes without an op, as observers hear of it.
#include "runtime/context/told_values.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include "fuzz/cases/tensors.h"
#include "runtime/context/observer.h"
#include "runtime/context/run_context.h"
#include "runtime/redistribution/redistribute.h"
#include "runtime/tensor/sharded_tensor.h"

namespace lockstep {
namespace {

struct Listener : Observer {
  void after_value(const ValueEvent& event) override {
    ids.push_back(event.id.text());
    if (event.spec)
      sizes = event.spec->sizes;
    else
      event.number += 1;
  }
  void before_op(const OpEvent& event) override { ops.push_back(event.id.text()); }

  std::vector<std::string> ids, ops;
  std::vector<int64_t> sizes;
};

class ToldValues : public ::testing::Test {
 protected:
  RunContext context_;
  RunContext::Use use_{context_};
  std::unique_ptr<World> world_ = testing::simulated_world({{"tp", 2}});
  const Mesh& mesh_ = world_->mesh({{"tp", 2}});
  at::Tensor x_ = distribute(testing::exact_tensor({4, 6}), Layout::parse(mesh_, "[tp=S(0)]"));
};

TEST_F(ToldValues, AreHeardUnderIdsOfTheirOwnAndMayBeChanged) {
  Listener listener;
  const ObserverScope scope(world_->observers(), listener);
  EXPECT_EQ(told_number(mesh_, "loss", 2), 3);
  EXPECT_EQ(told_number(mesh_, "loss", 5), 6);
  tell_tensor(x_, "joined", "layers.0");
  EXPECT_EQ(listener.ids,
            (std::vector<std::string>{"step 0, microbatch 0, init, loss #0", "step 0, microbatch 0, init, loss #1",
                                      "step 0, microbatch 0, init, layers.0, joined #0"}));
  EXPECT_EQ(listener.sizes, (std::vector<int64_t>{4, 6}));
}

/// Recordings number ops and collectives by what runs: nothing of it moves.
TEST_F(ToldValues, LeaveTheIdsOfOpsAsTheyAre) {
  Listener listener;
  const ObserverScope scope(world_->observers(), listener);
  at::add(x_, x_);
  const auto last = context_.last_op_id().text();
  told_number(mesh_, "loss", 2);
  tell_tensor(x_, "joined", "layers.0");
  EXPECT_EQ(context_.last_op_id().text(), last);
  at::add(x_, x_);
  EXPECT_EQ(listener.ops, (std::vector<std::string>{"step 0, microbatch 0, init, add.Tensor #0",
                                                    "step 0, microbatch 0, init, add.Tensor #1"}));
}

TEST_F(ToldValues, AreNotTouchedWhereNobodyListens) {
  EXPECT_EQ(told_number(mesh_, "loss", 2), 2);
  tell_tensor(x_, "joined", "layers.0");
  EXPECT_EQ(context_.last_op_id().op, "");
}

}  // namespace
}  // namespace lockstep
