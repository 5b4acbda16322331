// Uneven, empty and nested shards; views and products of them.
#include "tests/runtime/known_errors/on_mesh.h"

namespace lockstep::testing {
namespace {

TEST(PyTorch179502, AViewThatNoCutFollowsMovesOrIsRefused) {
  const OnMesh two({{"tp", 2}});
  const auto plain = exact_tensor({12, 8});
  for (const char* layout : {"[tp=S(1)]", "[tp=S(0)]"}) {
    const auto x = two.put(plain, layout);
    expect_same(x.reshape({16, 6}), plain.reshape({16, 6}));
    expect_same(x.view({16, 6}), plain.view({16, 6}));
    expect_same(x.view({4, 3, 8}), plain.view({4, 3, 8}));
  }
}

TEST(PyTorch143372, RanksWithoutElementsFlattenToo) {
  const OnMesh four({{"tp", 4}});
  for (const int64_t rows : {0, 1, 3, 5}) {
    const auto plain = exact_tensor({rows, 2});
    expect_same(four.put(plain, "[tp=S(0)]").view({-1}), plain.view({-1}));
    expect_same(four.put(plain, "[tp=S(1)]").reshape({-1}), plain.reshape({-1}));
  }
}

TEST(PyTorch144109, ShardsOfOtherSizesAreRefused) {
  const OnMesh two({{"tp", 2}});
  const auto make = [&](int64_t first, int64_t second) {
    return from_shards({at::ones({first}), at::ones({second})}, two.layout("[tp=S(0)]"), {5}, c10::kFloat);
  };
  EXPECT_EQ(make(3, 2).sizes(), c10::IntArrayRef({5}));
  EXPECT_THROW(make(2, 3), BadInput);
  EXPECT_THROW(make(3, 3), BadInput);
  EXPECT_THROW(make(5, 5), BadInput);
}

TEST(PyTorch103306, NoPaddingIsLeftAfterAGather) {
  const OnMesh four({{"tp", 4}});
  const auto plain = exact_tensor({5, 3});
  for (const char* layout : {"[tp=S(0)]", "[tp=S(1)]"}) {
    const auto whole = redistribute(four.put(plain, layout), four.layout("[]"));
    for (const auto& shard : sharded(whole).shards()->whole()) EXPECT_TRUE(same_bits(shard, plain)) << shard;
  }
}

TEST(PyTorch194457, NestedUnevenShardsKeepEveryRow) {
  const OnMesh mesh({{"dp", 2}, {"tp", 2}});
  const auto plain = exact_tensor({5, 3});
  for (const char* layout : {"[dp=S(0), tp=S(0)]", "[dp=S(0)@1, tp=S(0)@0]", "[dp=S(1), tp=S(1)]"}) {
    const auto x = mesh.put(plain, layout);
    expect_same(x, plain);
    expect_same(redistribute(x, mesh.layout("[]")), plain);
    expect_same(redistribute(x, mesh.layout("[dp=S(0)]")), plain);
  }
}

TEST(PyTorch166598, AContractionPairsWhatTwoOrdersOfCutsHold) {
  const OnMesh mesh({{"dp", 2}, {"tp", 2}});
  const auto a = exact_tensor({3, 8}), b = exact_tensor({8, 5});
  expect_same(at::mm(mesh.put(a, "[dp=S(1), tp=S(1)]"), mesh.put(b, "[dp=S(0)@1, tp=S(0)@0]")), at::mm(a, b));
  expect_same(at::mm(mesh.put(a, "[dp=S(1)@1, tp=S(1)@0]"), mesh.put(b, "[dp=S(0), tp=S(0)]")), at::mm(a, b));
}

TEST(PyTorch171942, CutsInAnotherOrderSplitAndMerge) {
  const OnMesh mesh({{"dp", 2}, {"tp", 3}});
  const auto plain = exact_tensor({12, 2});
  for (const char* layout : {"[dp=S(0)@1, tp=S(0)@0]", "[dp=S(0:2), tp=S(0)]", "[dp=S(0)@1, tp=S(0:4)@0]"}) {
    const auto x = mesh.put(plain, layout);
    expect_same(x.view({3, 4, 2}), plain.view({3, 4, 2}));
    expect_same(x.view({3, 4, 2}).flatten(0, 1), plain);
    expect_same(x.view({24}), plain.view({24}));
  }
}

TEST(PyTorch173976, TheTransposeOfAVectorIsItself) {
  const OnMesh two({{"tp", 2}});
  const auto plain = exact_tensor({5}), x = two.put(plain, "[tp=S(0)]");
  EXPECT_EQ(layout_of(x.t()).text(), "[tp=S(0)]");
  expect_same(x.t(), plain);
}

TEST(PyTorch150862, EmptyShardsBeginWhereTheTensorEnds) {
  const OnMesh mesh({{"dp", 4}});
  const auto layout = mesh.layout("[dp=S(0)]");
  for (const int64_t size : {0, 1, 3, 5, 9}) {
    int64_t next = 0;
    for (int rank = 0; rank < 4; ++rank) {
      const auto range = layout.cut(rank, 0, size);
      EXPECT_EQ(range.start, next) << "rank " << rank << " of " << size;
      next += range.length;
    }
    EXPECT_EQ(next, size);
  }
}

}  // namespace
}  // namespace lockstep::testing
