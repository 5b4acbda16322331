// Curves as TensorBoard's own reader sees them, beside the numbers of metrics.jsonl: every curve, step and value, of a
// run that begins anew and of one that goes on from a checkpoint.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/tools/run_lockstep.h"
#include "tests/tools/small_job.h"

namespace lockstep {
namespace {

constexpr const char* kPython = LOCKSTEP_SOURCE_DIR "/.python/bin/python3";

using Curve = std::vector<std::pair<int64_t, float>>;
using Curves = std::map<std::string, Curve>;

constexpr double kGibibyte = 1 << 30;

/// A curve and the field of metrics.jsonl whose numbers it draws, in a unit of its own.
struct Drawn {
  const char* curve;
  const char* field;
  double unit = 1;
};
constexpr Drawn kDrawn[] = {
    {"loss_metrics/global_avg_loss", "loss"},
    {"loss_metrics/global_max_loss", "max_loss"},
    {"grad_norm", "grad_norm"},
    {"lr", "learning_rate"},
    {"throughput(tps)", "tokens_per_second"},
    {"tflops", "teraflops"},
    {"mfu(%)", "mfu", 0.01},
    {"time_metrics/end_to_end(s)", "step_seconds"},
    {"time_metrics/data_loading(s)", "data_seconds"},
    {"time_metrics/communication(s)", "communication_seconds"},
    {"time_metrics/checkpoint(s)", "checkpoint_seconds"},
    {"time_metrics/left(s)", "seconds_left"},
    {"memory/resident(GiB)", "memory_bytes", kGibibyte},
    {"memory/peak_resident(GiB)", "peak_memory_bytes", kGibibyte},
    {"memory/parameters(GiB)", "parameter_bytes", kGibibyte},
    {"memory/gradients(GiB)", "gradient_bytes", kGibibyte},
    {"memory/optimizer(GiB)", "optimizer_bytes", kGibibyte},
    {"memory/other(GiB)", "other_bytes", kGibibyte},
};

class TensorBoard : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(kPython))
      GTEST_SKIP() << "NOT CHECKED: curves by TensorBoard's own reader (it is not installed: run tools/python_env)";
  }

  void train(const std::string& more) const {
    const auto run =
        run_lockstep("train " + job_ + " -q --metrics.enable_tensorboard true --checkpoint.enable true " + more);
    ASSERT_EQ(run.code, 0) << run.err;
  }

  Curves read() const {
    const auto run =
        run_binary(kPython, LOCKSTEP_SOURCE_DIR "/tests/tools/read_curves.py '" + folder_.file("out/tb") + "'");
    EXPECT_EQ(run.code, 0) << run.err;
    const auto json = nlohmann::json::parse(run.out, nullptr, /*allow_exceptions=*/false);
    return json.is_discarded() ? Curves{} : json.get<Curves>();
  }

  /// What metrics.jsonl says, as floats.
  Curves expected() const {
    Curves curves;
    std::istringstream lines(file_content(folder_.file("out/metrics.jsonl")));
    for (std::string line; std::getline(lines, line);) {
      const auto json = nlohmann::json::parse(line);
      const int64_t step = json.at("step");
      for (const auto& [curve, field, unit] : kDrawn)
        if (const auto& value = json.at(field); !value.is_null())
          curves[curve].emplace_back(step, static_cast<float>(value.get<double>() / unit));
      const double share = 100 * json.at("data_seconds").get<double>() / json.at("step_seconds").get<double>();
      curves["time_metrics/data_loading(%)"].emplace_back(step, static_cast<float>(share));
    }
    return curves;
  }

  void expect_equal(size_t steps) const {
    const auto read = this->read(), expected = this->expected();
    EXPECT_EQ(expected.at("lr").size(), steps);
    for (const auto& [name, curve] : read)
      EXPECT_TRUE(expected.contains(name)) << name << " is in no table of this test";
    for (const auto& [name, curve] : expected) {
      ASSERT_TRUE(read.contains(name)) << name;
      EXPECT_EQ(read.at(name), curve) << name << ", beside metrics.jsonl";
    }
  }

  TemporaryFolder folder_;
  std::string job_ = write_small_job(folder_);
};

TEST_F(TensorBoard, ReadsAllThatMetricsSay) {
  train("");
  expect_equal(4);
}

/// The steps that are taken again, at another learning rate, are drawn once: as they were in the end.
TEST_F(TensorBoard, ReadsEachStepOfAResumedRunOnce) {
  train("");
  const auto before = read();
  std::filesystem::remove_all(folder_.file("out/checkpoint/step-4"));
  train("--checkpoint.load_step 2 --optimizer.lr 1e-4 --checkpoint.allow_changed optimizer.lr");
  expect_equal(4);
  ASSERT_EQ(before.at("lr").size(), 4U);
  EXPECT_EQ(read().at("lr")[1], before.at("lr")[1]);
  EXPECT_NE(read().at("lr")[2], before.at("lr")[2]);
}

TEST_F(TensorBoard, ForgetsAnOlderRunOfItsFolder) {
  train("");
  train("--checkpoint.enable false --training.steps 3");
  expect_equal(3);
}

}  // namespace
}  // namespace lockstep
