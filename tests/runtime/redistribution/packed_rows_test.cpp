#include "runtime/tensor/packed_rows.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "core/error.h"
#include "fuzz/cases/generators.h"
#include "fuzz/cases/tensors.h"
#include "fuzz/trials/row_moves.h"
#include "runtime/context/observer.h"
#include "runtime/redistribution/gather.h"
#include "runtime/redistribution/redistribute.h"
#include "runtime/transport/simulated.h"
#include "tests/support/message_of.h"

namespace lockstep {
namespace {

using testing::exact_tensor;
using testing::message_of;
using testing::same_bits;

at::Tensor only_present(const at::Tensor& whole, const at::Tensor& cells) {
  return at::where(cells.unsqueeze(-1), whole, at::zeros({}, whole.options()));
}

RC_GTEST_PROP(PackedRows, EndInTheTargetAndKeepTheirValues, ()) { testing::moves_keep_rows(); }

at::Tensor every_third(const std::vector<int64_t>& sizes) {
  return at::arange(c10::multiply_integers(sizes)).remainder(3).eq(0).view(sizes);
}

/// 2 samples, 4 experts, 6 positions, rows of 5.
at::Tensor sixteen_rows(const Mesh& mesh, const char* layout) {
  return distribute_rows(exact_tensor({2, 4, 6, 5}), every_third({2, 4, 6}), Layout::parse(mesh, layout));
}

TEST(PackedRows, AreStoredAloneAndNamedByTheirCut) {
  const auto world = testing::simulated_world({{"ep", 2}});
  const auto& mesh = world->mesh("ep=2");
  const auto rows = sixteen_rows(mesh, "[ep=G(1)]");
  EXPECT_EQ(spec_of(rows).text(), "Float[2,4,6,5] rows of [2,4,6] cells [ep=G(1)]");
  for (const auto& shard : sharded(rows).shards()->whole()) EXPECT_EQ(shard.sizes(), (std::vector<int64_t>{8, 5}));
  EXPECT_EQ(layout_of(redistribute(rows, Layout::parse(mesh, "[ep=S(0)]"))).text(), "[ep=G(0)]");
  EXPECT_EQ(layout_of(redistribute(rows, Layout::parse(mesh, "[ep=S(3)]"))).text(), "[ep=S(3)]");
}

/// First a byte for each cell that moves, then rows: those of half of the cells stay where they are.
TEST(PackedRows, SendWhatMoves) {
  const auto world = testing::simulated_world({{"ep", 2}});
  const auto& mesh = world->mesh("ep=2");
  const auto rows = sixteen_rows(mesh, "[ep=G(0)]");
  world->traffic().clear();
  redistribute(rows, Layout::parse(mesh, "[ep=G(1)]"));
  EXPECT_EQ(world->traffic().on("ep", CollectiveKind::kAllToAll).count, 2);
  EXPECT_EQ(world->traffic().bytes(), 2 * 6 * 2 / 2 + 4 * 5 * 4);
  EXPECT_EQ(world->traffic().bytes(), 12 + 80);
  // All rows to the other rank.
  world->traffic().clear();
  redistribute(rows, Layout::parse(mesh, "[ep=R]"));
  EXPECT_EQ(world->traffic().bytes(), 4 * 6 + 8 * 5 * 4);
  // Of a sum the rows of the other rank's cells; which cells there are both know.
  const auto sum = redistribute(sixteen_rows(mesh, "[]"), Layout::parse(mesh, "[ep=P(sum)]"));
  world->traffic().clear();
  redistribute(sum, Layout::parse(mesh, "[ep=G(1)]"));
  EXPECT_EQ(world->traffic().on("ep", CollectiveKind::kReduceScatter).count, 1);
  EXPECT_EQ(world->traffic().bytes(), 8 * 5 * 4);
}

TEST(PackedRows, AreRefusedWhereTheyWouldBeMixed) {
  const auto world = testing::simulated_world({{"ep", 2}});
  const auto& mesh = world->mesh("ep=2");
  const auto rows = sixteen_rows(mesh, "[ep=G(1)]");
  const char* kReads = "; what computes from each row alone does, and the ops of runtime/own_ops/expert_ops.h";
  EXPECT_EQ(
      message_of<BadInput>([&] { at::sum(rows, {0}); }),
      std::string("sum.dim_IntList does not take packed rows (Float[2,4,6,5] rows of [2,4,6] cells [ep=G(1)]): its "
                  "elements come from several rows") +
          kReads);
  EXPECT_EQ(message_of<BadInput>([&] {
              at::mul(rows, distribute(exact_tensor({4, 6, 5}), Layout::replicated(mesh)));
            }),
            std::string("mul.Tensor does not take packed rows (Float[2,4,6,5] rows of [2,4,6] cells [ep=G(1)], "
                        "Float[4,6,5] [ep=R]): another operand has its own cells, or elements for every cell") +
                kReads);
  EXPECT_NO_THROW(at::add(rows, sixteen_rows(mesh, "[ep=G(1)]").neg()));
  const auto others =
      distribute_rows(exact_tensor({2, 4, 6, 5}), every_third({2, 4, 6}).flip(2), Layout::parse(mesh, "[ep=G(1)]"));
  EXPECT_EQ(message_of<BadInput>([&] { at::add(rows, others); }),
            "add.Tensor has operands whose rows are of different cells");
  EXPECT_EQ(message_of<BadInput>([&] {
              distribute(exact_tensor({4, 2}), Layout::parse(mesh, "[ep=G(0)]"));
            }),
            "layout [ep=G(0)]: G(0) cuts cells of packed rows, and a tensor of sizes [4,2] has none; write S(0)");
}

/// Says of the first cell that arrives the contrary.
class WrongCell final : public Observer {
 public:
  void received(const CollectiveEvent&, int, int, at::Tensor& payload) override {
    if (payload.scalar_type() != c10::kBool || payload.numel() == 0 || was_wrong_) return;
    payload = payload.clone();
    payload.view(-1)[0].logical_not_();
    was_wrong_ = true;
  }

 private:
  bool was_wrong_ = false;
};

TEST(PackedRows, ThatAreNotThoseOfTheirCellsAreRefused) {
  const auto world = testing::simulated_world({{"ep", 2}});
  const auto& mesh = world->mesh("ep=2");
  const auto rows = sixteen_rows(mesh, "[ep=G(0)]");
  WrongCell wrong;
  const ObserverScope scope(world->observers(), wrong);
  EXPECT_EQ(message_of<Inconsistency>([&] { redistribute(rows, Layout::parse(mesh, "[ep=G(1)]")); }),
            "rank 0 received rows [4, 5] from rank 1 along ep; the cells that it received before are of rows [3, 5]: "
            "one of both "
            "arrived wrongly");
}

TEST(PackedRows, ComputeRowByRow) {
  const auto world = testing::simulated_world({{"ep", 2}});
  const auto& mesh = world->mesh("ep=2");
  const auto cells = every_third({2, 4, 6});
  const auto scale = exact_tensor({5});
  const auto rows = at::mul(sixteen_rows(mesh, "[ep=G(2)]"), distribute(scale, Layout::replicated(mesh)));
  EXPECT_TRUE(same_bits(gather(rows), only_present(exact_tensor({2, 4, 6, 5}) * scale, cells)));
}

}  // namespace
}  // namespace lockstep
