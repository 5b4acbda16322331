// A case file holds one op with everything that it takes. Whatever a file claims, it is run or refused.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/files/atomic_file.h"
#include "replay/capture/recorded_tensor.h"
#include "replay/op_case/case_run.h"
#include "replay/store/recording_file.h"
#include "tests/support/sum_case.h"
#include "tests/support/temporary_folder.h"

namespace lockstep::replay {
namespace {

using lockstep::testing::case_of;
using lockstep::testing::sum_case;
using ::testing::HasSubstr;
using Json = nlohmann::ordered_json;

TEST(OpCase, KeepsEveryKindOfArgument) {
  const auto plain = at::arange(35, at::kFloat).view({7, 5});
  EXPECT_FALSE(run_case(sum_case()));
  const auto clamped = case_of("clamp", plain.clamp(2.5, 20), [](const at::Tensor& x) { at::clamp(x, 2.5, 20); });
  EXPECT_THAT(clamped.arguments, HasSubstr("0x1.4p+1"));
  EXPECT_FALSE(run_case(clamped));
  const auto joined = case_of("cat", at::cat({plain, plain}, 1), [](const at::Tensor& x) { at::cat({x, x}, 1); });
  EXPECT_FALSE(run_case(joined));
  const auto added =
      case_of("add_.Tensor", plain + 3, [](const at::Tensor& x) { at::Tensor(x).add_(at::ones_like(x), 3); });
  EXPECT_FALSE(run_case(added));
}

TEST(OpCase, AnotherResultIsNamed) {
  auto one = sum_case();
  one.tensors.back() = recorded_tensor("expected.0", at::zeros({5}));
  const auto blame = run_case(one);
  ASSERT_TRUE(blame);
  EXPECT_EQ(blame->id, one.id);
  EXPECT_THAT(blame->text(), HasSubstr("result of sum.dim_IntList[0] = 105, one device: 0 (relative 1.1e+302, "));
}

TEST(OpCase, SurvivesItsFile) {
  const TemporaryFolder folder;
  const auto one = sum_case();
  const auto bytes = to_file(one);
  write_file_atomically(folder.file("case.h5"), {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  const auto read = read_case(folder.file("case.h5"));
  EXPECT_EQ(read.arguments, one.arguments);
  EXPECT_EQ(read.finding, "a test");
  EXPECT_EQ(read.tensors.size(), 4u);
  EXPECT_FALSE(run_case(read));
}

/// A product is another one with other levels.
TEST(OpCase, KeepsItsRoundedLevels) {
  const TemporaryFolder folder;
  auto one = sum_case();
  for (const int64_t levels : {0, 6, 7, -1}) {
    one.rounded_levels = levels;
    const auto bytes = to_file(one);
    write_file_atomically(folder.file("case.h5"), {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    if (levels >= 0 && levels <= 6)
      EXPECT_EQ(read_case(folder.file("case.h5")).rounded_levels, levels);
    else
      EXPECT_THROW(read_case(folder.file("case.h5")), FileError) << levels;
  }
}

TEST(OpCase, ARecordingIsNone) {
  const TemporaryFolder folder;
  StepRecording recording;
  recording.job = "[model]\n";
  const auto bytes = to_file(recording);
  write_file_atomically(folder.file("step.h5"), {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  EXPECT_THROW(read_case(folder.file("step.h5")), FileError);
  EXPECT_THROW(read_case(folder.file("none.h5")), FileError);
  EXPECT_THROW(read_case(folder.path()), FileError);
}

TEST(OpCase, WhatCannotBeRunIsRefused) {
  const auto refused = [](const std::function<void(OpCase&)>& change) {
    auto one = sum_case();
    change(one);
    EXPECT_THROW(run_case(one), BadInput) << one.op << " on " << one.mesh << " " << one.arguments;
  };
  const auto with_argument = [&](size_t index, const Json& value) {
    refused([&](OpCase& one) {
      auto arguments = Json::parse(one.arguments);
      arguments[index] = value;
      one.arguments = arguments.dump();
    });
  };
  refused([](OpCase& one) { one.op = "aten::no_such_op"; });
  refused([](OpCase& one) { one.overload = "no_such_overload"; });
  refused([](OpCase& one) { one.op = "aten::linalg_eig", one.overload = ""; });
  refused([](OpCase& one) { one.mesh = "tp=2"; });
  refused([](OpCase& one) { one.mesh = "tp=99999999999"; });
  refused([](OpCase& one) { one.mesh = "?"; });
  refused([](OpCase& one) { one.tensors.erase(one.tensors.begin()); });
  refused([](OpCase& one) { one.tensors[1].sizes = {5, 2}; });
  refused([](OpCase& one) { one.arguments = "[]"; });
  refused([](OpCase& one) { one.arguments = "{"; });
  with_argument(0, 7);
  with_argument(0, nullptr);
  with_argument(0, {{"sharded", 0}, {"layout", "[tp=S(9)]"}, {"sizes", {7, 5}}, {"dtype", 6}});
  with_argument(0, {{"sharded", 0}, {"layout", "[tp=S(0)]"}, {"sizes", {-7, 5}}, {"dtype", 6}});
  with_argument(0, {{"sharded", 0}, {"layout", "[tp=S(0)]"}, {"sizes", {7, 5}}, {"dtype", 99}});
  with_argument(0, {{"sharded", "x"}});
  with_argument(0, {{"plain", "no such tensor"}});
  with_argument(1, {{"ints", {"x"}}});
  with_argument(1, {{"ints", {77}}});
  with_argument(1, {{"list", {1, 2}}});
  with_argument(2, {{"string", "x"}});
  with_argument(3, {{"unknown", 1}});
}

}  // namespace
}  // namespace lockstep::replay
