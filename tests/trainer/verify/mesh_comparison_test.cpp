#include "trainer/verify/mesh_comparison.h"

#include <ATen/Functions.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/layers.h"
#include "tests/support/small_models.h"

namespace lockstep::trainer {
namespace {

using ::testing::HasSubstr;

/// A table, and its product with what is read of it.
class Table final : public models::Model {
 public:
  explicit Table(double scale) : table_(*this, "table", 29, 8, models::Initial::drawn(rng::normal(0, scale))) {}
  at::Tensor forward(const at::Tensor& tokens) override {
    const auto x = run_block(table_, tokens, [this](const at::Tensor& input) { return table_.forward(input); });
    return at::linear(x, table_.weight());
  }
  int64_t vocabulary() const override { return 29; }
  std::vector<Module*> blocks() override { return {&table_}; }

 private:
  models::Embedding table_;
};

/// Under native numerics the run that trains is one of several: its own start is compared, too.
TEST(MeshComparison, ComparesTheStartOfTheRunThatTrains) {
  for (int odd = 0; odd <= 4; ++odd) {
    int made = 0;
    TrainingRun::Options options;
    options.mesh = parse_mesh("dp_shard=2");
    options.make_model = [&] { return std::make_unique<Table>(++made == odd ? 2 : 1); };
    const auto job = testing::native_job();
    MeshComparison comparison(job, options);
    const auto check = comparison.check(1, testing::batch_for(job, 1), 1e-2);
    EXPECT_EQ(made, 4) << "a reference, what is compared with it, the run that trains, the one that is shaken";
    if (odd == 3) EXPECT_THAT(check.difference, HasSubstr("parameter before the step of table.weight[")) << odd;
    if (odd == 0) EXPECT_EQ(check.difference, "");
  }
}

}  // namespace
}  // namespace lockstep::trainer
