#pragma once
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>

#include "runtime/plain/lazy_copy.h"
#include "runtime/plain/plain_tensors.h"
#include "tests/support/small_models.h"
#include "trainer/verify/native_run_check.h"

namespace lockstep::testing {

/// A run on a mesh, and what it is compared with.
class Compared {
 public:
  using MakeModel = std::function<std::unique_ptr<models::Model>()>;

  explicit Compared(const char* mesh, trainer::Job job = native_job(), const MakeModel& make_model = small_llama)
      : job_(std::move(job)),
        run_(job_, of_model(mesh, make_model, /*keep_gradients=*/true)),
        pair_(job_, of_model(mesh, make_model)),
        ops_(run_, /*sample=*/1'000'000, OpCheck::Updates::kAll),
        check_(job_, of_model(mesh, make_model), pair_, run_) {}

  trainer::StepCheck step(int64_t step) {
    const auto batch = batch_for(job_, step);
    check_.begin(step);
    auto check = pair_.check(step, batch, 1e-2);
    EXPECT_TRUE(check.agrees()) << check.difference;
    trainer::StepResult result;
    {
      const trainer::OpVerifier::Watch watch(ops_);
      result = run_.step(step, batch, 1e-2);
    }
    ops_.judge(check);
    EXPECT_TRUE(check.agrees()) << "by its ops: " << check.difference;
    check_.judge(step, batch, 1e-2, result, ops_, check);
    return check;
  }

  trainer::TrainingRun& run() { return run_; }

 private:
  static trainer::TrainingRun::Options of_model(const char* mesh, const MakeModel& make_model,
                                                bool keep_gradients = false) {
    auto options = small_llama_on(mesh);
    options.make_model = make_model;
    options.keep_gradients = keep_gradients;
    return options;
  }

  trainer::Job job_;
  trainer::TrainingRun run_;
  trainer::StepVerifier pair_;
  trainer::OpVerifier ops_;
  trainer::NativeRunCheck check_;
};

/// Multiplies what one rank has behind every move, in the run that trains alone.
class WrongMoves final : public Observer {
 public:
  WrongMoves(std::string op, double factor) : op_(std::move(op)), factor_(factor) {}
  void after_move(const MoveEvent& event) override {
    if (event.id.op != op_) return;
    const PlainTensors guard;
    const at::NoGradGuard no_grad;
    before_write(event.shards_after[1]);
    at::Tensor(event.shards_after[1]).mul_(factor_);
    ++spoiled;
  }
  int64_t spoiled = 0;

 private:
  std::string op_;
  double factor_;
};

}  // namespace lockstep::testing
