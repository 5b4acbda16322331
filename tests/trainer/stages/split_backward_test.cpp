// Backwards in two parts: what waits, what does not, and that the whole is what one part would have given.
#include "trainer/sharding/split_backward.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "fuzz/cases/tensors.h"
#include "runtime/context/observer.h"
#include "runtime/context/world.h"
#include "runtime/redistribution/gather.h"
#include "runtime/redistribution/redistribute.h"
#include "runtime/tensor/sharded_tensor.h"
#include "tests/support/message_of.h"
#include "tests/support/small_models.h"
#include "trainer/stages/pipeline_step.h"
#include "trainer/step/training_run.h"

namespace lockstep::trainer {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// Which gradients of weights, and which transfers, come in which order.
class Order final : public Observer {
 public:
  void before_op(const OpEvent& event) override {
    if (event.id.op == "mesh::weight_gradient") note("W", event.id);
  }
  void before_collective(const CollectiveEvent& event) override {
    if (event.kind == CollectiveKind::kTransfer && event.id.phase == Phase::kBackward) note("T", event.id);
  }
  std::vector<std::string> seen;

 private:
  /// Several in a row are one.
  void note(const char* what, const OpId& id) {
    auto text = fmt::format("{}{}", what, id.microbatch);
    if (seen.empty() || seen.back() != text) seen.push_back(std::move(text));
  }
};

/// Of three stages the second one, which has layer 1, takes a gradient from the third and gives one to the first.
std::vector<std::string> order_on_the_second_stage(const char* schedule, Job job) {
  job.training.global_batch_size = job.training.local_batch_size = 3;
  job.parallelism.pipeline_parallel_microbatch_size = 1;
  job.parallelism.pipeline_parallel_schedule = schedule;
  TrainingRun::Options options;
  options.mesh = parse_mesh("pp=3");
  options.make_model = [] { return std::make_unique<models::Llama>(testing::small_llama_options()); };
  TrainingRun run(job, std::move(options));
  class OnSecondStage final : public Observer {
   public:
    explicit OnSecondStage(Order& order) : order_(order) {}
    void before_op(const OpEvent& event) override {
      if (event.id.module.starts_with("layers.1")) order_.before_op(event);
    }
    void before_collective(const CollectiveEvent& event) override {
      if (event.id.module == "stages.1") order_.before_collective(event);
    }

   private:
    Order& order_;
  };
  Order order;
  OnSecondStage listener(order);
  const ObserverScope scope(run.world().observers(), listener);
  run.step(1, testing::batch_for(job, 1), 1e-2);
  return order.seen;
}

TEST(SplitBackward, WeightsWaitUntilTheScheduleSaysSo) {
  EXPECT_THAT(order_on_the_second_stage("1F1B", testing::small_job()),
              ElementsAre("T0", "W0", "T0", "T1", "W1", "T1", "T2", "W2", "T2"));
  EXPECT_THAT(order_on_the_second_stage("ZBH1", testing::small_job()), ElementsAre("T0", "T1", "W0", "T2", "W1", "W2"));
}

class SplitBackwardOnAMesh : public ::testing::Test {
 protected:
  void SetUp() override {
    World::Options options;
    options.numerics = Numerics::kCanonical;
    world_ = testing::simulated_world({{"tp", 2}}, options);
    mesh_ = &world_->mesh("tp=2");
  }
  at::Tensor placed(const at::Tensor& plain) { return distribute(plain, Layout::replicated(*mesh_)); }

  std::unique_ptr<World> world_;
  const Mesh* mesh_ = nullptr;
  at::Tensor input_ = at::arange(6, at::kFloat).reshape({1, 2, 3}),
             weight_ = at::arange(12, at::kFloat).reshape({4, 3});
};

/// A bias does not wait, a weight does; both reach what was cut off when it ends, and not before.
TEST_F(SplitBackwardOnAMesh, GradientsReachWhatWasCutOffAtTheEnd) {
  const auto weight = placed(weight_).requires_grad_(), bias = placed(at::ones({4})).requires_grad_();
  const auto x = placed(input_).requires_grad_();
  SplitBackward split;
  const auto cut = split.cut({weight * 1, bias * 1, placed(at::ones({4}))});
  EXPECT_FALSE(cut[2].requires_grad());
  {
    const DeferredGradients::Scope deferring(split.deferred());
    at::linear(x, cut[0], cut[1]).backward(placed(at::ones({1, 2, 4})));
  }
  EXPECT_TRUE(x.grad().defined());
  EXPECT_FALSE(weight.grad().defined());
  EXPECT_FALSE(bias.grad().defined());
  split.finish();
  EXPECT_TRUE(at::equal(gather(weight.grad()), input_.sum(c10::IntArrayRef({0, 1})).expand({4, 3})));
  EXPECT_TRUE(at::equal(gather(bias.grad()), at::full({4}, 2.0)));
}

/// Outside of the scope nothing waits; what was not cut never does.
TEST_F(SplitBackwardOnAMesh, OnlyWhatWasCutMayWait) {
  const auto other = placed(weight_).requires_grad_();
  SplitBackward split;
  const auto cut = split.cut({placed(weight_).requires_grad_() * 1});
  {
    const DeferredGradients::Scope deferring(split.deferred());
    at::sum(at::linear(placed(input_), other)).backward();
  }
  EXPECT_TRUE(other.grad().defined());
  at::sum(at::linear(placed(input_), cut[0])).backward();
  EXPECT_TRUE(split.deferred().waiting().empty());
}

TEST_F(SplitBackwardOnAMesh, RefusesAWeightThatSomethingElseUsesToo) {
  SplitBackward split;
  const auto cut = split.cut({placed(weight_).requires_grad_() * 1});
  {
    const DeferredGradients::Scope deferring(split.deferred());
    (at::sum(at::linear(placed(input_), cut[0])) + at::sum(cut[0])).backward();
  }
  EXPECT_THAT(testing::message_of<BadInput>([&] { split.finish(); }),
              HasSubstr("used by a linear map and by something else"));
}

}  // namespace
}  // namespace lockstep::trainer
