// Ranks as threads of this process: what one cannot do ends all, and who takes long is waited for.
#include "trainer/launch/together.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <thread>

#include "core/error.h"
#include "fuzz/trials/streams.h"
#include "runtime/context/run_context.h"
#include "runtime/context/world.h"
#include "runtime/dispatch/backend.h"
#include "trainer/launch/rank_texts.h"

namespace lockstep::trainer {
namespace {

using namespace std::chrono_literals;

constexpr int kRanks = 3;
constexpr auto kTimeout = 1s;

/// What each rank's program ends with: "exit code: text", or "fine".
std::vector<std::string> run_ranks(const std::function<void(int, const Mesh&)>& program) {
  register_backend();
  const auto transports = testing::connected_transports(kRanks, testing::StreamKind::kMemory, kTimeout);
  std::vector<std::future<std::string>> ranks;
  for (int rank = 0; rank < kRanks; ++rank)
    ranks.push_back(std::async(std::launch::async, [&, rank]() -> std::string {
      World world({.rank_count = kRanks, .local_ranks = {rank}, .transport = transports[static_cast<size_t>(rank)]});
      const auto& mesh = world.mesh("dp=3");
      try {
        program(rank, mesh);
        return "fine";
      } catch (const Error& error) {
        return fmt::format("{}: {}", static_cast<int>(error.code()), error.what());
      }
    }));
  std::vector<std::string> ends;
  for (auto& rank : ranks) ends.push_back(rank.get());
  return ends;
}

std::vector<std::string> each(const std::string& end) { return std::vector<std::string>(kRanks, end); }

TEST(Together, TextsAreThoseOfAllRanksInTheirOrder) {
  EXPECT_EQ(run_ranks([](int rank, const Mesh& mesh) {
              const std::vector<std::string> expected{"", "x", "xx"};
              LOCKSTEP_CHECK(texts_of_all_ranks(mesh, std::string(static_cast<size_t>(rank), 'x')) == expected);
              LOCKSTEP_CHECK(texts_of_all_ranks(mesh, "") == std::vector<std::string>(kRanks));
            }),
            each("fine"));
}

TEST(Together, OneThatFailsEndsAllWithItsCodeAndSaysWhose) {
  EXPECT_EQ(run_ranks([](int rank, const Mesh& mesh) {
              agreed(mesh, [&] {
                if (rank == 1) fail<FileError>("out/step-4: the disk is full");
              });
            }),
            each("5: rank 1: out/step-4: the disk is full"));
  EXPECT_EQ(run_ranks([](int rank, const Mesh& mesh) {
              together(mesh, [&] {
                if (rank == 2) fail<BadInput>("of {}", rank);
                if (rank == 1) throw std::runtime_error("no type of ours");
              });
            }),
            each("1: rank 1: internal error: no type of ours"));
}

TEST(Together, TheSameErrorOfAllIsSaidOnce) {
  EXPECT_EQ(run_ranks([](int, const Mesh& mesh) { agreed(mesh, [] { fail<FileError>("no such folder"); }); }),
            each("5: no such folder"));
}

TEST(Together, EveryFamilyOfErrorsStaysWhatItIs) {
  for (int code = 1; code <= 6; ++code)
    EXPECT_EQ(run_ranks([&](int, const Mesh& mesh) {
                agreed(mesh, [&] { throw Error(static_cast<ExitCode>(code), "text"); });
              }),
              each(std::to_string(code) + ": text"));
}

/// Three times as long as a rank waits for a message.
TEST(Together, WhoTakesLongIsWaitedFor) {
  const auto slow = [](int rank) {
    if (rank == 1) std::this_thread::sleep_for(3 * kTimeout);
  };
  EXPECT_EQ(run_ranks([&](int rank, const Mesh& mesh) { together(mesh, [&] { slow(rank); }); }), each("fine"));
  const auto without_heartbeats = run_ranks([&](int rank, const Mesh& mesh) { agreed(mesh, [&] { slow(rank); }); });
  EXPECT_THAT(without_heartbeats[0], ::testing::StartsWith("4: "));
}

TEST(Together, TheEarliestFindingCountsOfSeveralTheLowestRanks) {
  const auto expect_first = [](const std::vector<std::optional<Found>>& all, int64_t position, int whose) {
    EXPECT_EQ(run_ranks([&](int rank, const Mesh& mesh) {
                const auto first = earliest(mesh, all[static_cast<size_t>(rank)]);
                LOCKSTEP_CHECK(first && first->position == position && first->rank == whose);
                LOCKSTEP_CHECK(first->text == all[static_cast<size_t>(whose)]->text);
              }),
              each("fine"));
  };
  expect_first({Found{7, "a"}, Found{3, "b"}, Found{5, "c"}}, 3, 1);
  expect_first({std::nullopt, Found{3, "b"}, Found{3, "c"}}, 3, 1);
  expect_first({std::nullopt, std::nullopt, Found{0, "a line\nand \"another\""}}, 0, 2);
  EXPECT_EQ(run_ranks([](int, const Mesh& mesh) { LOCKSTEP_CHECK(!earliest(mesh, std::nullopt)); }), each("fine"));
}

TEST(Together, RanksOfOneProcessNeedNobody) {
  register_backend();
  World world({.rank_count = 2});
  const auto& mesh = world.mesh("dp=2");
  EXPECT_THROW(together(mesh, [] { fail<FileError>("here"); }), FileError);
  EXPECT_EQ(earliest(mesh, Found{4, "all say so"})->rank, 0);
}

}  // namespace
}  // namespace lockstep::trainer
