// Any redistribution between ranks that are threads here, over the streams that processes use: the bits of one process.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <thread>

#include "fuzz/calls/sharded_calls.h"
#include "fuzz/cases/generators.h"
#include "fuzz/cases/tensors.h"
#include "fuzz/trials/streams.h"
#include "runtime/redistribution/gather.h"
#include "runtime/redistribution/redistribute.h"
#include "runtime/transport/wrapper.h"

namespace lockstep {
namespace {

using testing::exact_tensor;
using testing::StreamKind;

struct Trial {
  std::vector<MeshAxis> axes;
  std::vector<int64_t> shape;
  std::string source, target;  ///< Layout::text()
  size_t one_round_bytes = 0;
  StreamKind kind = StreamKind::kSocket;
};

/// One rank's part, with a World of its own. What went wrong, or "".
std::string run_rank(const Trial& trial, int rank, int ranks, std::shared_ptr<Transport> transport) {
  try {
    World world({.rank_count = ranks,
                 .local_ranks = {rank},
                 .transport = std::move(transport),
                 .one_round_bytes = trial.one_round_bytes});
    const auto& mesh = world.mesh(trial.axes);
    const auto global = exact_tensor(trial.shape);
    const auto moved =
        redistribute(testing::scatter(global, Layout::parse(mesh, trial.source)), Layout::parse(mesh, trial.target));
    return testing::same_bits(gather(moved), global) ? "" : "other bits";
  } catch (const Error& error) {
    return error.what();
  }
}

/// Of two ranks' errors: both have noticed, and that what they move is not the same.
void expect_disagreement(const Trial& first, const Trial& second, const char* what) {
  const auto transports = testing::connected_transports(2, StreamKind::kMemory, std::chrono::seconds{20});
  std::string other;
  std::thread thread([&] { other = run_rank(second, 1, 2, transports[1]); });
  const auto mine = run_rank(first, 0, 2, transports[0]);
  thread.join();
  const auto text = [](int a, int b) { return fmt::format("rank {} and rank {} disagree about a collective: ", a, b); };
  using ::testing::HasSubstr;
  const auto at_once = HasSubstr("; in collective 0 (");
  EXPECT_THAT(mine, ::testing::AllOf(HasSubstr(text(0, 1)), HasSubstr(what), at_once));
  EXPECT_THAT(other, ::testing::AllOf(HasSubstr(text(1, 0)), HasSubstr(what), at_once));
}

/// Pieces with as many bytes: taken for each other they would be wrong numbers.
TEST(StreamRedistribute, RanksThatMoveOtherThingsDisagree) {
  const std::vector<MeshAxis> tp{{"tp", 2}};
  const char* const purpose = "purpose (op, sizes, placements) ";
  expect_disagreement({tp, {4, 4}, "[tp=P(sum)]", "[tp=S(0)]"}, {tp, {4, 4}, "[tp=P(sum)]", "[tp=S(1)]"}, purpose);
  expect_disagreement({tp, {4, 4}, "[tp=S(0)]", "[tp=S(1)]"}, {tp, {4, 4}, "[tp=S(1)]", "[tp=S(0)]"}, purpose);
  expect_disagreement({tp, {4, 3}, "[tp=P(avg)]", "[tp=S(0)]"}, {tp, {4, 3}, "[tp=P(sum)]", "[tp=S(0)]"}, purpose);
}

/// What the second rank holds of 5 rows is as large as what it holds of 4: the first rank has to notice by more than
/// that.
TEST(StreamRedistribute, RanksWithTensorsOfOtherSizesDisagree) {
  const std::vector<MeshAxis> tp{{"tp", 2}};
  expect_disagreement({tp, {4, 3}, "[tp=S(0)]", "[]"}, {tp, {5, 3}, "[tp=S(0)]", "[]"}, "sizes");
}

/// Counts what is read where it lies.
class Loans final : public TransportWrapper {
 public:
  using TransportWrapper::TransportWrapper;
  std::optional<BorrowedPayload> borrow(int source, int destination) override {
    auto loan = TransportWrapper::borrow(source, destination);
    count += loan.has_value();
    if (loan && cuts) loan->parts[0] = loan->parts[0].first(8);
    return loan;
  }
  int count = 0;
  bool cuts = false;  ///< as if the other rank had cut what it sends in another way
};

using LentPair = std::array<std::shared_ptr<Loans>, 2>;

/// Two ranks of which each knows that the other can read its tensors. What went wrong on each.
std::array<std::string, 2> run_lending(const Trial& trial, const LentPair& pair) {
  const Trial greeting{{{"tp", 2}}, {}, "[tp=P(sum)]", "[]", 0};
  std::array<std::string, 2> problems;
  const auto run = [&](size_t rank) {
    const auto number = static_cast<int>(rank);
    for (int i = 0; i < 2; ++i) run_rank(greeting, number, 2, pair[rank]);
    problems[rank] = run_rank(trial, number, 2, pair[rank]);
  };
  std::thread thread([&] { run(1); });
  run(0);
  thread.join();
  return problems;
}

LentPair lending_pair(std::chrono::seconds timeout = std::chrono::seconds{20}) {
  const auto streams = testing::connected_transports(2, StreamKind::kShared, timeout);
  return {std::make_shared<Loans>(streams[0]), std::make_shared<Loans>(streams[1])};
}

/// A sum reads the other ranks' parts where they lie, and so does a gather that has to interleave them; one whose
/// pieces lie in one stretch of the result gets them there.
TEST(StreamRedistribute, WhatIsOnlyReadIsNotCopied) {
  const std::tuple<const char*, const char*, int> moves[] = {
      {"[tp=P(sum)]", "[tp=S(0)]", 1}, {"[tp=P(sum)]", "[]", 1}, {"[tp=S(1)]", "[]", 1}, {"[tp=S(0)]", "[]", 0}};
  for (const auto& [source, target, loans] : moves) {
    const Trial trial{{{"tp", 2}}, {3, 50'000}, source, target, 0};
    const auto pair = lending_pair();
    EXPECT_THAT(run_lending(trial, pair), ::testing::Each("")) << source << target;
    EXPECT_EQ(pair[0]->count, loans) << source << target;
    EXPECT_EQ(pair[1]->count, loans) << source << target;
  }
}

TEST(StreamRedistribute, ALoanInOtherPiecesEndsInAnError) {
  const auto pair = lending_pair(std::chrono::seconds{1});
  pair[0]->cuts = true;
  const auto problems = run_lending({{{"tp", 2}}, {3, 50'000}, "[tp=P(sum)]", "[]", 0}, pair);
  EXPECT_THAT(problems[0],
              ::testing::StartsWith("rank 1 sent rank 0 the bytes that it expects, but cut into other tensors; in "
                                    "collective 0 (all_reduce on tp) of step "));
}

RC_GTEST_PROP(StreamRedistribute, GivesTheBitsOfOneProcess, ()) {
  Trial trial;
  trial.axes = *testing::mesh_axes(2, 4);
  trial.shape = *testing::sizes(2, 6);
  // Through the pipe, piece after piece through it, and lent.
  if (!trial.shape.empty()) trial.shape.back() *= *rc::gen::element<int64_t>(1, 50, 20'000, 120'000);
  trial.one_round_bytes = *rc::gen::element<size_t>(0, 1 << 16);
  trial.kind = *rc::gen::element(StreamKind::kSocket, StreamKind::kMemory, StreamKind::kShared);
  const auto planning = testing::simulated_world(trial.axes);
  const auto& mesh = planning->mesh(trial.axes);
  const int dims = static_cast<int>(trial.shape.size());
  trial.source = testing::layout(mesh, dims, true).text();
  trial.target = testing::layout(mesh, dims, true).text();
  RC_LOG() << mesh.text() << " " << trial.source << " -> " << trial.target << " of " << c10::str(trial.shape);
  const int ranks = mesh.rank_count();
  const auto transports = testing::connected_transports(ranks, trial.kind, std::chrono::seconds{20});
  std::vector<std::string> problems(static_cast<size_t>(ranks));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    const auto place = static_cast<size_t>(rank);
    threads.emplace_back([&, rank, place] { problems[place] = run_rank(trial, rank, ranks, transports[place]); });
  }
  for (auto& thread : threads) thread.join();
  for (const auto& problem : problems) RC_ASSERT(problem == "");
}

}  // namespace
}  // namespace lockstep
