// What compares each op and each move with one device's, over packed rows.
#include <gtest/gtest.h>

#include <optional>

#include "consistency/ops/op_check.h"
#include "runtime/context/observer.h"
#include "runtime/dispatch/dispatch.h"
#include "runtime/dispatch/op_results.h"
#include "runtime/plain/plain_tensors.h"
#include "tests/support/cases/expert_layer.h"

namespace lockstep::testing {
namespace {

/// Changes what one op, or the n-th move, gave a rank that has any of it.
class Spoiler final : public Observer {
 public:
  explicit Spoiler(const char* op) : op_(op) {}
  explicit Spoiler(int64_t move) : move_(move) {}

  void after_op(const OpEvent& event, std::span<const c10::IValue> results) override {
    if (event.id.op != op_) return;
    for (const auto& result : op_results(event, results)) spoil(sharded(result.tensor).shards()->local_tensors());
  }
  void after_move(const MoveEvent& event) override {
    if (--move_ == 0) spoil(event.shards_after);
  }
  bool has_spoiled() const { return has_spoiled_; }

 private:
  void spoil(const Shards& shards) {
    const PlainTensors guard;
    for (const auto& shard : shards) {
      if (has_spoiled_ || shard.numel() == 0 || !shard.is_floating_point()) continue;
      const auto most = shard.flatten().abs().argmax().item<int64_t>();
      shard.view(-1)[most].add_(1);
      has_spoiled_ = true;
    }
  }

  std::string op_;
  int64_t move_ = -1;
  bool has_spoiled_ = false;
};

TEST(ExpertOps, AgreeWithOneDevice) {
  const auto values = ExpertValues::drawn();
  for (const auto numerics : {lockstep::Numerics::kNative, lockstep::Numerics::kCanonical})
    for (const auto& place : kPlaces) {
      const auto world = world_of(place, numerics);
      OpCheck check(*world, 1);
      const ObserverScope watched(world->observers(), check);
      on_mesh(values, place, *world);
      EXPECT_FALSE(check.blame()) << place.mesh << " " << place.rows << ": " << check.blame()->text();
      EXPECT_GT(check.counts().compared_ops, 10) << place.mesh;
      EXPECT_EQ(check.counts().compared_ops, check.counts().ops - check.counts().without_bound) << place.mesh;
    }
}

TEST(ExpertOps, WhatIsWrongIsSeen) {
  const auto values = ExpertValues::drawn();
  const auto& place = kPlaces[1];
  for (const auto numerics : {lockstep::Numerics::kNative, lockstep::Numerics::kCanonical})
    for (const char* op : {"mesh::expert_rows", "mesh::expert_linear", "mesh::expert_sums",
                           "mesh::expert_weight_gradient", "mesh::expert_factors"}) {
      const auto world = world_of(place, numerics);
      OpCheck check(*world, 1);
      Spoiler spoiler(op);
      const ObserverScope spoiled(world->observers(), spoiler), watched(world->observers(), check);
      on_mesh(values, place, *world);
      ASSERT_TRUE(spoiler.has_spoiled()) << op;
      ASSERT_TRUE(check.blame()) << op;
      EXPECT_NE(check.blame()->text().find(op), std::string::npos) << check.blame()->text();
    }
}

TEST(ExpertOps, WrongMovesAreSeen) {
  const auto values = ExpertValues::drawn();
  const auto& place = kPlaces[1];
  int64_t seen = 0;
  for (int64_t move = 1; move <= 16; ++move) {
    const auto world = world_of(place, lockstep::Numerics::kCanonical);
    OpCheck check(*world, 1);
    Spoiler spoiler(move);
    const ObserverScope spoiled(world->observers(), spoiler), watched(world->observers(), check);
    on_mesh(values, place, *world);
    EXPECT_EQ(check.blame().has_value(), spoiler.has_spoiled()) << "move " << move;
    seen += spoiler.has_spoiled();
  }
  EXPECT_GE(seen, 4);  // there and back, forward and backward
}

/// What a move is told to have given is what goes on.
TEST(ExpertOps, WrongMovesGoOn) {
  const auto values = ExpertValues::drawn();
  const auto& place = kPlaces[1];
  const auto world = world_of(place, lockstep::Numerics::kCanonical);
  const auto expected = on_mesh(values, place, *world);
  Spoiler spoiler(2);  // of the rows; cells go first
  const ObserverScope spoiled(world->observers(), spoiler);
  EXPECT_FALSE(same_bits(on_mesh(values, place, *world)[0], expected[0]));
  EXPECT_TRUE(spoiler.has_spoiled());
}

}  // namespace
}  // namespace lockstep::testing
