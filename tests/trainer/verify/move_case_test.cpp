// The case of a move of a tensor between two layouts: every move of a run can be made again alone, or is refused.
#include "replay/op_case/move_case.h"

#include <ATen/Functions.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/files/atomic_file.h"
#include "replay/op_case/case_run.h"
#include "runtime/redistribution/redistribute.h"
#include "runtime/tensor/sharded_tensor.h"
#include "tests/support/message_of.h"
#include "tests/support/small_models.h"
#include "tests/support/temporary_folder.h"
#include "trainer/step/training_run.h"

namespace lockstep::replay {
namespace {

using lockstep::TemporaryFolder;
using lockstep::testing::message_of;
using ::testing::HasSubstr;
using Json = nlohmann::ordered_json;

/// A case of the first move of each kind that a run makes.
class Moves final : public Observer {
 public:
  void after_move(const MoveEvent& event) override {
    const auto text = event.before.layout.text() + " -> " + event.after.layout.text();
    if (cases.contains(text) || event.before.element_count() == 0) return;
    const auto one = case_of_move(MovedValue(event), event.id.text(), text);
    ASSERT_TRUE(one) << text;
    cases[text] = *one;
  }
  std::map<std::string, OpCase> cases;
};

OpCase through_a_file(const OpCase& one) {
  const TemporaryFolder folder;
  const auto bytes = to_file(one);
  write_file_atomically(folder.file("case.h5"), {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  return read_case(folder.file("case.h5"));
}

using Where = std::tuple<const char*, Numerics, Domain>;
class MoveCasesOn : public ::testing::TestWithParam<Where> {};

TEST_P(MoveCasesOn, AgreeWithoutAFault) {
  const auto [mesh, numerics, domain] = GetParam();
  auto job = lockstep::testing::small_job();
  job.numerics.mode = to_text(numerics);
  auto options = lockstep::testing::small_llama_on(mesh);
  options.domain = domain;
  trainer::TrainingRun run(job, options);
  Moves moves;
  {
    const ObserverScope scope(run.world().observers(), moves);
    run.step(1, lockstep::testing::batch_for(job, 1), 1e-2);
  }
  EXPECT_GE(moves.cases.size(), 2u);
  for (const auto& [text, one] : moves.cases) {
    const auto read = through_a_file(one);
    EXPECT_EQ(read.arguments, one.arguments);
    EXPECT_EQ(read.tensors.size(), one.tensors.size()) << text;
    const auto blame = run_case(read);
    EXPECT_FALSE(blame) << text << "\n" << blame->text();
  }
}

INSTANTIATE_TEST_SUITE_P(Runs, MoveCasesOn,
                         ::testing::Values(Where{"dp_shard=2,tp=2", Numerics::kCanonical, Domain::kDeclared},
                                           Where{"dp_replicate=2,dp_shard=2,tp=3", Numerics::kCanonical,
                                                 Domain::kDeclared},
                                           Where{"cp=2,tp=2", Numerics::kCanonical, Domain::kDeclared},
                                           Where{"dp_shard=3", Numerics::kNative, Domain::kDeclared},
                                           Where{"dp_shard=2,tp=3", Numerics::kNative, Domain::kFloat64}));

OpCase case_on(const char* before, const char* after) {
  World world(World::Options{.rank_count = 2});
  const auto& mesh = world.mesh("tp=2");
  const MeshScope scope(mesh);
  Moves moves;
  const ObserverScope watching(world.observers(), moves);
  const auto value = distribute(at::arange(12, at::kFloat).view({4, 3}), Layout::parse(mesh, before));
  redistribute_values(value, Layout::parse(mesh, after), "test");
  return moves.cases.begin()->second;
}

TEST(MoveCase, SaysWhatMovesWhere) {
  const auto one = case_on("[tp=S(0)]", "[tp=R]");
  EXPECT_EQ(one.op, "move");
  EXPECT_EQ(one.arguments, R"([{"sharded":0,"layout":"[tp=S(0)]","sizes":[4,3],"dtype":6},{"string":"[tp=R]"}])");
  ASSERT_EQ(one.tensors.size(), 2u);
  EXPECT_FALSE(run_case(one));
}

TEST(MoveCase, WhatCannotBeMovedIsRefused) {
  const auto refusal = [](const char* layout_after, const std::function<void(Json&)>& change) {
    auto one = case_on("[tp=S(0)]", "[tp=R]");
    auto arguments = Json::parse(one.arguments);
    arguments[1]["string"] = layout_after;
    change(arguments);
    one.arguments = arguments.dump();
    return message_of<BadInput>([&] { run_case(one); });
  };
  const auto none = [](Json&) {};
  constexpr const char* kNone = "no such error";  // message_of()
  EXPECT_EQ(refusal("[tp=S(0)]", none), "what moves in the case stays in its layout [tp=S(0)]");
  EXPECT_NE(refusal("[tp=S(2)]", none), kNone);
  EXPECT_NE(refusal("[dp=R]", none), kNone);
  EXPECT_NE(refusal("nonsense", none), kNone);
  EXPECT_EQ(refusal("[tp=P(sum)]", none), kNone) << "parts of a sum are a layout as others are";
  EXPECT_THAT(refusal("[tp=R]", [](Json& json) { json.erase(1); }),
              HasSubstr("the case has 1 arguments, move takes 2"));
  EXPECT_NE(refusal("[tp=R]", [](Json& json) { json[0] = {{"plain", "argument.0.rank0"}}; }), kNone);
  EXPECT_NE(refusal("[tp=R]", [](Json& json) { json[1] = 7; }), kNone);
  EXPECT_NE(refusal("[tp=R]", [](Json& json) { json[0]["sizes"] = {4, 4}; }), kNone);
}

}  // namespace
}  // namespace lockstep::replay
