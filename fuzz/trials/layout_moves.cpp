#include "fuzz/trials/layout_moves.h"

#include <ATen/Functions.h>
#include <rapidcheck.h>

#include <array>
#include <thread>

#include "core/error.h"
#include "core/mesh_text.h"
#include "fuzz/calls/drawn_mesh.h"
#include "fuzz/cases/generators.h"
#include "fuzz/cases/tensors.h"
#include "fuzz/trials/rule_properties.h"
#include "fuzz/trials/streams.h"
#include "runtime/redistribution/gather.h"
#include "runtime/redistribution/redistribute.h"
#include "runtime/transport/faulty.h"
#include "runtime/transport/simulated.h"

namespace lockstep::testing {
namespace {

constexpr std::chrono::seconds kPatience{20};

void only_sums(Placements& placements) {
  for (auto& placement : placements)
    if (placement.is_partial() && placement.reduction != Reduction::kAvg) placement.reduction = Reduction::kSum;
}

std::string draw_layout_text(const Mesh& mesh, const at::Tensor& tensor, bool sums) {
  auto placements = draw_layout(mesh, tensor).placements();
  if (sums) only_sums(placements);
  return Layout(mesh, std::move(placements)).text();
}

World::Options options_of(const LayoutMove& move) {
  World::Options options;
  options.rank_count = move.ranks();
  if (!move.one_round) options.one_round_bytes = 0;
  return options;
}

/// A move that has begun, or that the first use begins.
at::Tensor begin_move(World& world, const LayoutMove& move) {
  const auto& mesh = world.mesh(move.axes);
  const auto source = scatter(move.plain, Layout::parse(mesh, move.source));
  const auto target = Layout::parse(mesh, move.target);
  return move.later ? redistribute_later(source, target) : redistribute(source, target);
}

/// What is wrong with what has moved; "" if nothing is. Errors are thrown.
std::string wrong_with(const at::Tensor& moved, const LayoutMove& move) {
  const auto whole = gather(moved);
  const auto target = Layout::parse(layout_of(moved).mesh(), move.target);
  if (layout_of(moved) != without_idle_units(target, move.plain.sizes())) return "lies as " + layout_of(moved).text();
  return same_bits(whole, move.plain) ? "" : c10::str("other bits:", values_of(whole), " for", values_of(move.plain));
}

std::string moved_wrongly(World& world, const LayoutMove& move) { return wrong_with(begin_move(world, move), move); }

void require_right(const std::string& what, const LayoutMove& move) {
  if (!what.empty()) RC_FAIL(fmt::format("{}: {}", describe(move), what));
  ++compared_cases()["layouts"];
}

std::string problem_of_rank(const LayoutMove& move, int rank, std::shared_ptr<Transport> transport) {
  try {
    auto options = options_of(move);
    options.local_ranks = {rank};
    options.transport = std::move(transport);
    World world(std::move(options));
    return moved_wrongly(world, move);
  } catch (const std::exception& error) {
    return error.what();
  }
}

/// What failed once does not give other values later: it fails again, or has them after all.
std::string wrong_after_error(const at::Tensor& moved, const LayoutMove& move) {
  if (!moved.defined()) return {};
  try {
    const auto what = wrong_with(moved, move);
    return what.empty() ? "" : "after an error it " + what;
  } catch (const std::exception&) {
    return {};
  }
}

/// One message of those that are sent, chosen by what it is.
std::shared_ptr<FaultyTransport> faulty_transport(uint64_t seed, FaultKind kind, int which) {
  auto count = std::make_shared<int>(0);
  const auto choose = [=](const Message& message) -> std::optional<FaultKind> {
    if (message.header.bytes == 0 || (*count)++ != which) return std::nullopt;
    return kind;
  };
  return std::make_shared<FaultyTransport>(std::make_shared<SimulatedTransport>(seed), choose);
}

}  // namespace

int LayoutMove::ranks() const { return static_cast<int>(rank_count(axes)); }

LayoutMove draw_move(int most_ranks, bool sums) {
  LayoutMove move;
  move.axes = *mesh_axes(4, most_ranks);
  const auto dtype = sums ? *rc::gen::element(c10::kFloat, c10::kDouble)
                          : *rc::gen::element(c10::kFloat, c10::kDouble, c10::kBFloat16, c10::kHalf, c10::kLong,
                                              c10::kInt, c10::kByte, c10::kBool, c10::kComplexFloat);
  move.plain = exact_tensor(*sizes(3, 7), c10::kLong, dtype == c10::kBool ? 2 : 7);
  move.plain = (dtype == c10::kByte ? move.plain.abs() : move.plain).to(dtype);
  const auto world = simulated_world(move.axes);
  const auto& mesh = world->mesh(move.axes);
  move.source = draw_layout_text(mesh, move.plain, sums), move.target = draw_layout_text(mesh, move.plain, sums);
  move.one_round = *rc::gen::arbitrary<bool>();
  move.later = *rc::gen::arbitrary<bool>();
  return move;
}

std::string describe(const LayoutMove& move) {
  return fmt::format("{} {} -> {} on {}{}", c10::str(move.plain.scalar_type(), move.plain.sizes()), move.source,
                     move.target, to_text(move.axes), move.one_round ? "" : ", not in one round") +
         (move.later ? ", on first use" : "");
}

void a_move_keeps_values() {
  const auto move = draw_move(32);
  auto options = options_of(move);
  if (*rc::gen::arbitrary<bool>())
    options.transport = std::make_shared<SimulatedTransport>(*rc::gen::arbitrary<uint64_t>());
  register_backend();
  World world(std::move(options));
  std::string what;
  try {
    what = moved_wrongly(world, move);
  } catch (const std::exception& error) {
    what = error.what();
  }
  require_right(what, move);
}

void a_move_keeps_gradients() {
  const auto move = draw_move(16, /*sums=*/true);
  const auto world = simulated_world(move.axes);
  const auto& mesh = world->mesh(move.axes);
  const auto weights = exact_tensor(move.plain.sizes(), move.plain.scalar_type(), 5);
  const auto place = draw_layout(mesh, weights);
  std::string what;
  try {
    auto x = scatter(move.plain, Layout::parse(mesh, move.source)).requires_grad_();
    const auto moved = redistribute(x, Layout::parse(mesh, move.target));
    at::sum(at::mul(moved, scatter(weights, place))).backward();
    what = x.grad().defined() ? difference(x.grad(), weights, {weights.scalar_type()}, true) : "there is none";
  } catch (const std::exception& error) {
    what = error.what();
  }
  if (!what.empty()) what = fmt::format("gradient, weights {}: {}", place.text(), what);
  require_right(what, move);
}

void a_move_between_threads_keeps_values() {
  const auto move = draw_move(6);
  const auto kind = *rc::gen::element(StreamKind::kMemory, StreamKind::kShared, StreamKind::kSocket);
  register_backend();
  const auto transports = connected_transports(move.ranks(), kind, kPatience);
  std::vector<std::string> problems(transports.size());
  std::vector<std::thread> threads;
  for (size_t rank = 0; rank < transports.size(); ++rank)
    threads.emplace_back(
        [&, rank] { problems[rank] = problem_of_rank(move, static_cast<int>(rank), transports[rank]); });
  for (auto& thread : threads) thread.join();
  for (size_t rank = 0; rank < problems.size(); ++rank)
    if (!problems[rank].empty()) RC_FAIL(fmt::format("{}, rank {}: {}", describe(move), rank, problems[rank]));
  ++compared_cases()["layouts"];
}

void a_faulty_move_ends_in_an_error() {
  const auto move = draw_move(8);
  const auto kind =
      *rc::gen::element(FaultKind::kDrop, FaultKind::kCorrupt, FaultKind::kDelay, FaultKind::kReorder,
                        FaultKind::kWrongGroup, FaultKind::kWrongKind, FaultKind::kWrongDtype, FaultKind::kWrongBytes);
  const auto transport = faulty_transport(*rc::gen::arbitrary<uint64_t>(), kind, *rc::gen::inRange(0, 12));
  auto options = options_of(move);
  options.transport = transport;
  register_backend();
  World world(std::move(options));
  at::Tensor moved;
  std::string what;
  try {
    moved = begin_move(world, move);
    what = wrong_with(moved, move);
  } catch (const Error& error) {
    const bool is_noticed = error.code() == ExitCode::kTransport || error.code() == ExitCode::kInconsistent;
    const bool is_harmless = transport->injected() == 0 || kind == FaultKind::kDelay;
    what = is_noticed && !is_harmless ? wrong_after_error(moved, move) : error.what();
    if (what.empty()) return void(++refused_cases()["layouts"]);
  } catch (const std::exception& error) {
    what = error.what();
  }
  require_right(what, move);
}

}  // namespace lockstep::testing
