// Small random programs of collectives on random meshes, all in simulation, with at most one fault each. A seed decides
// everything. Whatever the fault: no run hangs, no rank that ends has other bits than it should, and errors name a rank
// and a collective. A seed that fails is run alone with LOCKSTEP_FAULT_SEED=n.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <map>
#include <thread>

#include "fuzz/calls/sharded_calls.h"
#include "fuzz/cases/tensors.h"
#include "runtime/context/observer.h"
#include "runtime/redistribution/gather.h"
#include "runtime/redistribution/redistribute.h"
#include "runtime/transport/faulty.h"
#include "tests/support/message_of.h"
#include "tests/support/turns.h"

namespace lockstep {
namespace {

using testing::exact_tensor;

/// What one rank does otherwise than the others, once.
enum class RankFault { kNone, kThrows, kLate, kOtherKind, kOtherDtype, kOtherShape, kOtherAxis, kSkips, kReorders };

constexpr const char* kRankFaultNames[] = {"none",        "throws",     "late",  "other kind", "other dtype",
                                           "other shape", "other axis", "skips", "reorders"};

constexpr FaultKind kMessageFaults[] = {FaultKind::kDrop,       FaultKind::kCorrupt,    FaultKind::kDelay,
                                        FaultKind::kReorder,    FaultKind::kWrongGroup, FaultKind::kWrongKind,
                                        FaultKind::kWrongDtype, FaultKind::kWrongBytes};

constexpr const char* kMessageFaultNames[] = {"dropped",     "corrupt",    "delayed",     "overtaken",
                                              "wrong group", "wrong kind", "wrong dtype", "wrong bytes"};

/// A redistribution along one axis of the mesh.
struct Step {
  int axis = 0, from = 0, to = 0;  ///< places in kPlacements
  int64_t rows = 0;
  c10::ScalarType dtype = c10::kFloat;

  bool operator==(const Step&) const = default;
};

constexpr const char* kPlacements[] = {"R", "S(0)", "S(1)", "P(sum)"};

/// All that a seed decides.
struct Trial {
  explicit Trial(uint64_t number) : seed(number), random(number) {
    draw_mesh();
    for (auto i = draw(2, 6); i > 0; --i) steps.push_back(draw_step());
    faulty_rank = static_cast<int>(draw(0, ranks - 1));
    faulty_step = static_cast<size_t>(draw(0, static_cast<int64_t>(steps.size()) - 1));
    if (draw(0, 1) == 0)
      rank_fault = static_cast<RankFault>(draw(0, 8));
    else
      message_fault = kMessageFaults[draw(0, std::size(kMessageFaults) - 1)];
  }

  int64_t draw(int64_t least, int64_t most) {
    return least + static_cast<int64_t>(random() % static_cast<uint64_t>(most - least + 1));
  }

  void draw_mesh() {
    do {
      axes.clear();
      ranks = 1;
      for (auto i = draw(1, 3); i > 0; --i) {
        axes.push_back({std::string(1, static_cast<char>('a' + axes.size())), draw(1, 8)});
        ranks *= static_cast<int>(axes.back().size);
      }
    } while (ranks < 2 || ranks > 8);
  }

  Step draw_step() {
    constexpr c10::ScalarType kDtypes[] = {c10::kFloat, c10::kDouble, c10::kLong};
    const int from = static_cast<int>(draw(1, 3));
    const int to = static_cast<int>(from == 3 ? draw(0, 2) : draw(0, 1) == 0 ? 0 : 3 - from);
    return {static_cast<int>(draw(0, static_cast<int64_t>(axes.size()) - 1)), from, to, draw(1, 9),
            kDtypes[draw(0, 2)]};
  }

  std::string fault() const {
    return message_fault ? kMessageFaultNames[static_cast<size_t>(*message_fault)]
                         : kRankFaultNames[static_cast<size_t>(rank_fault)];
  }

  /// Which have to end well.
  bool is_harmless() const {
    return message_fault ? *message_fault == FaultKind::kDelay
                         : rank_fault <= RankFault::kLate && rank_fault != RankFault::kThrows;
  }

  uint64_t seed;
  std::mt19937_64 random;
  std::vector<MeshAxis> axes;
  int ranks = 0;
  std::vector<Step> steps;
  int faulty_rank = 0;
  size_t faulty_step = 0;
  RankFault rank_fault = RankFault::kNone;
  std::optional<FaultKind> message_fault;
};

/// The steps of the rank at fault.
std::vector<Step> faulty_steps(const Trial& trial) {
  auto steps = trial.steps;
  const auto place = trial.faulty_step;
  auto& step = steps[place];
  const auto next = std::min(place + 1, steps.size() - 1);
  const bool is_seen = next == place || step != steps[next];  // docs/processes.md
  if (trial.rank_fault == RankFault::kOtherKind) step.to = step.to == 0 ? 3 - std::min(step.from, 2) : 0;
  if (trial.rank_fault == RankFault::kOtherDtype) step.dtype = step.dtype == c10::kFloat ? c10::kInt : c10::kFloat;
  if (trial.rank_fault == RankFault::kOtherShape) step.rows += 8;
  if (trial.rank_fault == RankFault::kOtherAxis) step.axis = (step.axis + 1) % static_cast<int>(trial.axes.size());
  if (trial.rank_fault == RankFault::kReorders && is_seen) std::swap(step, steps[next]);
  if (trial.rank_fault == RankFault::kSkips && is_seen) steps.erase(steps.begin() + static_cast<ptrdiff_t>(place));
  return steps;
}

/// What became of a trial.
struct Outcome {
  std::string log;                  ///< of all events, in their order
  std::vector<std::string> errors;  ///< per rank; "" where it ended with the right bits
  int injected = 0;                 ///< faults of messages
};

class Run {
 public:
  explicit Run(const Trial& trial)
      : trial_(trial),
        turns_(trial.ranks, trial.seed),
        messages_(std::make_shared<testing::LoggedMessages>(std::make_shared<SimulatedTransport>(trial.seed), turns_)),
        faulty_(std::make_shared<FaultyTransport>(messages_, [this](const Message& m) { return choose(m); })),
        errors_(static_cast<size_t>(trial.ranks)) {}

  Outcome outcome() {
    std::vector<std::thread> threads;
    for (int rank = 0; rank < trial_.ranks; ++rank) threads.emplace_back([this, rank] { run_rank(rank); });
    for (auto& thread : threads) thread.join();
    return {messages_->text(), errors_, faulty_->injected()};
  }

 private:
  /// One message of the faulty rank: of those that hold something, one in the order that it sends them.
  std::optional<FaultKind> choose(const Message& message) {
    if (!trial_.message_fault || message.source != trial_.faulty_rank || message.header.bytes == 0) return std::nullopt;
    return sent_++ == trial_.faulty_step ? trial_.message_fault : std::nullopt;
  }

  void run_rank(int rank) {
    turns_.begin(rank);
    auto& error = errors_[static_cast<size_t>(rank)];
    try {
      run_steps(rank);
    } catch (const std::exception& caught) {
      error = caught.what();
    }
    messages_->log(fmt::format("{} ends: {}", rank, error));
    turns_.end(rank);
  }

  void run_steps(int rank) {
    World world({.rank_count = trial_.ranks,
                 .local_ranks = {rank},
                 .transport = std::make_shared<testing::TurnTransport>(faulty_, *messages_, turns_, rank)});
    const auto& mesh = world.mesh(trial_.axes);
    const bool is_faulty = rank == trial_.faulty_rank;
    const auto steps = is_faulty ? faulty_steps(trial_) : trial_.steps;
    for (size_t i = 0; i < steps.size(); ++i) {
      if (is_faulty && i == trial_.faulty_step) begin_fault(rank);
      run_step(mesh, steps[i]);
    }
  }

  void begin_fault(int rank) {
    if (trial_.rank_fault == RankFault::kThrows) throw std::runtime_error("a fault of this test");
    for (int i = 0; i < 200 && trial_.rank_fault == RankFault::kLate; ++i) turns_.pass(rank);
  }

  /// What did not arrive is not there when it is asked for again, either.
  static void arrive(ShardSet& shards) {
    try {
      shards.local_tensors();
    } catch (const std::exception& first) {
      const auto again = testing::message_of<std::exception>([&] { shards.local_tensors(); });
      if (again != first.what()) throw std::logic_error("asked again, shards that did not arrive: " + again);
      throw;
    }
  }

  static void run_step(const Mesh& mesh, const Step& step) {
    const auto global = exact_tensor({step.rows, 3}, step.dtype);
    const auto layout = [&](int placement) {
      const auto& axis = mesh.axes()[static_cast<size_t>(step.axis)].name;
      return Layout::parse(mesh, "[" + axis + "=" + kPlacements[placement] + "]");
    };
    const auto moved = redistribute_later(testing::scatter(global, layout(step.from)), layout(step.to));
    arrive(*sharded(moved).shards());
    LOCKSTEP_CHECK(testing::same_bits(gather(moved), global), "other bits");
  }

  const Trial& trial_;
  testing::Turns turns_;
  std::shared_ptr<testing::LoggedMessages> messages_;
  std::shared_ptr<FaultyTransport> faulty_;
  std::vector<std::string> errors_;
  size_t sent_ = 0;
};

bool names_rank_and_collective(const std::string& error) {
  return error.find("rank ") != error.npos && error.find("in collective ") != error.npos;
}

/// What is wrong with how the trial ended; "" if nothing is.
std::string problem(const Trial& trial, const Outcome& outcome) {
  bool any = false;
  for (int rank = 0; rank < trial.ranks; ++rank) {
    const auto& error = outcome.errors[static_cast<size_t>(rank)];
    if (error.empty() || error == "a fault of this test") continue;
    any = true;
    if (!names_rank_and_collective(error))
      return fmt::format("rank {} ended by an error without rank or collective: {}", rank, error);
  }
  if (any && trial.is_harmless())
    return "an error without a fault: " + fmt::format("{}", fmt::join(outcome.errors, "\n"));
  if (!any && outcome.injected > 0 && !trial.is_harmless()) return "nobody noticed the fault";
  return "";
}

/// Of one kind of fault: trials in which it happened, and those of them that ended in an error.
struct Count {
  bool is_harmless;
  int happened = 0, noticed = 0;
};
using Counts = std::map<std::string, Count>;

/// Some faults of ranks change nothing (a step skipped that is like the next): they count where somebody noticed.
void count(const Trial& trial, const Outcome& outcome, Counts& counts) {
  auto& mine = counts.try_emplace(trial.fault(), Count{trial.is_harmless()}).first->second;
  mine.happened += trial.message_fault ? outcome.injected : 1;
  mine.noticed += std::any_of(outcome.errors.begin(), outcome.errors.end(), [](auto& error) { return !error.empty(); });
}

void expect_every_kind(const Counts& counts, uint64_t seeds) {
  EXPECT_EQ(counts.size(), std::size(kRankFaultNames) + std::size(kMessageFaultNames));
  for (const auto& [fault, mine] : counts) {
    const int seen = mine.is_harmless ? mine.happened : mine.noticed;
    EXPECT_GE(static_cast<uint64_t>(seen), seeds / 200) << fault << ": of " << seeds << " trials";
    ::testing::Test::RecordProperty(fault, fmt::format("{} happened, {} noticed", mine.happened, mine.noticed));
  }
}

void run_seed(uint64_t seed, bool twice, Counts& counts) {
  const Trial trial(seed);
  const auto outcome = Run(trial).outcome();
  count(trial, outcome, counts);
  ASSERT_EQ(problem(trial, outcome), "") << "again with LOCKSTEP_FAULT_SEED=" << seed
                                         << " build/release/tests/test_runtime"
                                         << " --gtest_filter=FaultSeeds.*\n"
                                         << outcome.log;
  if (!twice) return;
  ASSERT_EQ(Run(trial).outcome().log, outcome.log) << "LOCKSTEP_FAULT_SEED=" << seed;
}

TEST(FaultSeeds, EndWithRightBitsOrNameRankAndCollective) {
  Counts counts;
  if (const char* seed = std::getenv("LOCKSTEP_FAULT_SEED")) return run_seed(std::stoull(seed), true, counts);
  const auto start = std::chrono::steady_clock::now();
  const auto budget = std::chrono::seconds(std::getenv("LOCKSTEP_SOAK") ? 600 : 30);
  const uint64_t first = static_cast<uint64_t>(std::time(nullptr)) / 60 * 10'000;
  uint64_t seed = first;
  for (; seed < first + 10'000 && std::chrono::steady_clock::now() - start < budget && !HasFatalFailure(); ++seed)
    run_seed(seed, seed % 4 == 0, counts);
  expect_every_kind(counts, seed - first);
  fmt::print("seeds {} to {}\n", first, seed - 1);
}

}  // namespace
}  // namespace lockstep
