// A part of a mesh must behave as a mesh of its own: the same shards, bits and traffic as a plain mesh of its shape,
// wherever its ranks lie, whoever else computes at the same time, and in a process that has none of its ranks.
#include <ATen/Functions.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <thread>

#include "core/error.h"
#include "fuzz/cases/generators.h"
#include "fuzz/cases/tensors.h"
#include "runtime/context/random.h"
#include "runtime/context/scopes.h"
#include "runtime/redistribution/gather.h"
#include "runtime/redistribution/redistribute.h"
#include "runtime/transport/simulated.h"

namespace lockstep {
namespace {

using testing::exact_tensor;
using testing::same_bits;

std::string message_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const BadInput& error) {
    return error.what();
  }
  return "no error";
}

TEST(Submesh, HasTheRanksAtACoordinate) {
  World world({.rank_count = 12});
  const auto& mesh = world.mesh("pp=2,dp=2,tp=3");
  const auto& stage = mesh.submesh("pp", 1);
  EXPECT_EQ(to_text(stage.axes()), "dp=2,tp=3");
  EXPECT_EQ(stage.ranks(), (std::vector<int>{6, 7, 8, 9, 10, 11}));
  EXPECT_EQ(stage.local_index(8), 2);
  EXPECT_EQ(stage.local_index(5), -1);
  EXPECT_EQ(stage.group(8, stage.find_axis("dp")), (RankGroup{8, 11}));
  EXPECT_EQ(mesh.submesh("dp", 1).ranks(), (std::vector<int>{3, 4, 5, 9, 10, 11}));
  EXPECT_EQ(mesh.submesh("tp", 2).ranks(), (std::vector<int>{2, 5, 8, 11}));
  EXPECT_EQ(mesh.submesh({"pp", "tp"}, 4).ranks(), (std::vector<int>{3, 4, 5, 9, 10, 11}));
  EXPECT_EQ(mesh.submesh({}, 4).ranks(), (std::vector<int>{4}));
}

TEST(Submesh, IsOneObjectHoweverItIsReached) {
  World world({.rank_count = 8});
  const auto& mesh = world.mesh("pp=2,dp=2,tp=2");
  const auto& part = mesh.submesh("pp", 1).submesh("dp", 0);
  EXPECT_EQ(&mesh.submesh("dp", 0).submesh("pp", 1), &part);
  EXPECT_EQ(&mesh.submesh({"tp"}, 5), &part);
  EXPECT_EQ(&part.whole(), &mesh);
  EXPECT_EQ(&mesh.submesh({"pp", "dp", "tp"}, 3), &mesh);
  EXPECT_EQ(part.text(), "pp=2,dp=2,tp=2 at pp=1,dp=0");
  EXPECT_EQ(&world.mesh(part.text()), &part);
}

TEST(Submesh, RefusesWhatTheMeshDoesNotHave) {
  World world({.rank_count = 4});
  const auto& mesh = world.mesh("pp=2,tp=2");
  EXPECT_EQ(message_of([&] { mesh.submesh("dp", 0); }), "mesh pp=2,tp=2 has no axis dp");
  EXPECT_EQ(message_of([&] { mesh.submesh("pp", 2); }), "mesh pp=2,tp=2 has no coordinate pp=2; there are 0 to 1");
  EXPECT_EQ(message_of([&] { mesh.submesh("pp", 1).submesh("pp", 1); }), "mesh pp=2,tp=2 at pp=1 has no axis pp");
  EXPECT_EQ(message_of([&] { mesh.submesh("pp", 1).submesh({"tp"}, 1); }), "mesh pp=2,tp=2 at pp=1 has no rank 1");
}

TEST(Submesh, DoesNotMeetAnotherInOneOp) {
  World world({.rank_count = 4});
  const auto& mesh = world.mesh("pp=2,tp=2");
  const auto on = [&](int64_t stage) {
    return distribute(exact_tensor({4}), Layout::replicated(mesh.submesh("pp", stage)));
  };
  EXPECT_EQ(
      message_of([&] { at::add(on(0), on(1)); }),
      "one op has operands on mesh pp=2,tp=2 at pp=0 and on mesh pp=2,tp=2 at pp=1; bring them to one mesh first");
}

/// What one rank holds at the end of a program.
using Held = std::vector<at::Tensor>;

Held held_by(const std::vector<at::Tensor>& tensors, const Mesh& mesh, int rank) {
  Held held;
  for (const auto& tensor : tensors)
    held.push_back(sharded(tensor).shards()->local_tensors()[static_cast<size_t>(mesh.local_index(rank))]);
  return held;
}

struct Placing {
  std::string source, target;
};

/// Moves, products, random numbers, pending moves and a backward pass. The same on every mesh of one shape.
std::vector<at::Tensor> program(const Mesh& mesh, const Placing& placing) {
  const auto source = Layout::parse(mesh, placing.source), target = Layout::parse(mesh, placing.target);
  auto x = distribute(exact_tensor({6, 5}), source).requires_grad_();
  const auto moved = redistribute(x, target);
  const auto product = at::matmul(moved, distribute(exact_tensor({5, 3}), Layout::replicated(mesh)));
  const auto noise = draw(source, {6, 5}, c10::kFloat, rng::uniform(), 3, 4);
  const auto later = redistribute_later(noise, target);
  const auto bucket = redistribute_bucket({noise, x.detach()}, {target, target});
  (product * product).sum().backward();
  return {moved.detach(), product.detach(), noise, later.detach(), bucket[0], bucket[1], x.grad()};
}

void expect_same(const Held& held, const Held& expected, int rank) {
  LOCKSTEP_CHECK_EQ(held.size(), expected.size());
  for (size_t t = 0; t < held.size(); ++t)  // may run on a thread that RapidCheck knows nothing of
    LOCKSTEP_CHECK(same_bits(held[t], expected[t]), "rank {}, tensor {} of the program", rank, t);
}

/// Per rank of a plain mesh of these axes, what it holds.
std::vector<Held> run_alone(const std::vector<MeshAxis>& axes, const Placing& placing) {
  const auto world = testing::simulated_world(axes);
  const auto& mesh = world->mesh(axes);
  const auto tensors = program(mesh, placing);
  std::vector<Held> all;
  for (const int rank : mesh.ranks()) all.push_back(held_by(tensors, mesh, rank));
  return all;
}

struct Scene {
  std::vector<MeshAxis> axes;
  std::string fixed;                        ///< the axis that the parts fix
  std::vector<MeshAxis> rest;               ///< the axes of each part
  std::vector<Placing> placings;            ///< per part
  std::vector<std::vector<Held>> expected;  ///< per part and rank of it
};

/// A random mesh, one of its axes, and a program for each part along it.
Scene scene(int max_ranks) {
  Scene scene{*testing::mesh_axes(3, max_ranks), {}, {}, {}, {}};
  const auto fixed = *rc::gen::inRange<size_t>(0, scene.axes.size());
  scene.fixed = scene.axes[fixed].name;
  for (const auto& axis : scene.axes)
    if (axis.name != scene.fixed) scene.rest.push_back(axis);
  const auto world = testing::simulated_world(scene.rest);
  for (int64_t part = 0; part < scene.axes[fixed].size; ++part) {
    const auto& mesh = world->mesh(scene.rest);
    scene.placings.push_back({testing::layout(mesh, 2, false).text(), testing::layout(mesh, 2, false).text()});
    scene.expected.push_back(run_alone(scene.rest, scene.placings.back()));
    RC_LOG() << "part " << part << ": " << scene.placings.back().source << " -> " << scene.placings.back().target;
  }
  RC_LOG() << "mesh " << to_text(scene.axes) << " by " << scene.fixed;
  return scene;
}

/// Runs every part's program in this World, and compares what the local ranks hold.
void run_parts(const Scene& scene, World& world, bool leave_out_foreign) {
  std::vector<std::vector<at::Tensor>> results;
  const auto part_of = [&](size_t p) -> const Mesh& {
    return world.mesh(scene.axes).submesh(scene.fixed, static_cast<int64_t>(p));
  };
  for (size_t p = 0; p < scene.placings.size(); ++p) {
    const bool skip = leave_out_foreign && part_of(p).local_count() == 0;
    results.push_back(skip ? std::vector<at::Tensor>{} : program(part_of(p), scene.placings[p]));
  }
  for (size_t p = 0; p < results.size(); ++p)
    for (size_t r = 0; r < scene.expected[p].size(); ++r) {
      const int rank = part_of(p).ranks()[r];
      if (part_of(p).local_index(rank) >= 0)
        expect_same(held_by(results[p], part_of(p), rank), scene.expected[p][r], rank);
    }
}

RC_GTEST_PROP(Submesh, ComputesAsAMeshOfItsShape, ()) {
  const auto given = scene(12);
  const auto world = testing::simulated_world(given.axes);
  run_parts(given, *world, false);
}

RC_GTEST_PROP(Submesh, ComputesTheSameOverMessages, ()) {
  const auto given = scene(8);
  World::Options options;
  options.transport = std::make_shared<SimulatedTransport>(*rc::gen::arbitrary<uint64_t>());
  options.one_round_bytes = *rc::gen::element<size_t>(0, 1 << 16);
  const auto world = testing::simulated_world(given.axes, options);
  run_parts(given, *world, false);
}

/// One thread per rank or per half of the ranks; many of them have no rank of a part, and run its program on nothing or
/// leave it out.
RC_GTEST_PROP(Submesh, NeedsNoRankHere, ()) {
  const auto given = scene(6);
  const auto ranks = static_cast<int>(rank_count(given.axes));
  const auto threads = *rc::gen::inRange(1, ranks + 1);
  const bool leave_out = *rc::gen::arbitrary<bool>();
  const auto transport = std::make_shared<SimulatedTransport>(*rc::gen::arbitrary<uint64_t>(), threads);
  std::vector<std::string> errors(static_cast<size_t>(threads));
  const auto drive = [&](int thread) {
    World::Options options;
    options.transport = transport;
    for (int rank = thread; rank < ranks; rank += threads) options.local_ranks.push_back(rank);
    try {
      const auto world = testing::simulated_world(given.axes, options);
      run_parts(given, *world, leave_out);
    } catch (const std::exception& error) {
      errors[static_cast<size_t>(thread)] = error.what();
    }
    transport->leave();
  };
  std::vector<std::thread> running;
  for (int thread = 0; thread < threads; ++thread) running.emplace_back(drive, thread);
  for (auto& thread : running) thread.join();
  for (const auto& error : errors) RC_ASSERT(error == "");
}

/// Masks of dropout, one for each call: of a part of the mesh, or of the whole (-1).
std::vector<at::Tensor> masks(const Mesh& mesh, const std::string& fixed, const std::vector<int>& calls) {
  const RandomScope random(7);
  RunContext::current().begin_microbatch(1, 0);
  const ModuleScope module("layer");
  std::vector<at::Tensor> all;
  for (const int part : calls) {
    const auto& where = part < 0 ? mesh : mesh.submesh(fixed, part);
    const auto ones = distribute(at::ones({64}), Layout::replicated(where));
    all.push_back(std::get<1>(at::native_dropout(ones, 0.5, true)));
  }
  return all;
}

/// A process draws the same whether others' ranks compute beside it or in processes of their own.
RC_GTEST_PROP(Submesh, DrawsTheSameWhoeverElseIsHere, ()) {
  const auto axes = *testing::mesh_axes(3, 8);
  const auto& fixed = axes[*rc::gen::inRange<size_t>(0, axes.size())];
  const auto calls = *rc::gen::container<std::vector<int>>(rc::gen::inRange(-1, static_cast<int>(fixed.size)));
  const auto all = testing::simulated_world(axes);
  const auto expected = masks(all->mesh(axes), fixed.name, calls);
  World::Options options;
  options.local_ranks = {*rc::gen::inRange(0, static_cast<int>(rank_count(axes)))};
  options.transport = std::make_shared<SimulatedTransport>(1);
  const auto one = testing::simulated_world(axes, options);
  const auto drawn = masks(one->mesh(axes), fixed.name, calls);
  for (size_t i = 0; i < drawn.size(); ++i)
    for (const auto& mask : sharded(drawn[i]).shards()->local_tensors())
      RC_ASSERT(same_bits(mask, gather(expected[i])));
}

TEST(Submesh, CountsTrafficOfItsOwnAxesOnly) {
  World world({.rank_count = 8});
  const auto& stage = world.mesh("pp=2,tp=4").submesh("pp", 1);
  const auto x = distribute(exact_tensor({8, 3}), Layout::parse(stage, "[tp=P(sum)]"));
  redistribute(x, Layout::parse(stage, "[tp=S(0)]"));
  EXPECT_EQ(world.traffic().on("tp", CollectiveKind::kReduceScatter).count, 1);
  EXPECT_EQ(world.traffic().bytes(), 8 * 3 * 4 * 3 / 4);
}

TEST(Submesh, AValueThatIsNotHereIsAnErrorThatSaysSo) {
  World::Options options{.rank_count = 4, .local_ranks = {0, 1}};
  options.transport = std::make_shared<SimulatedTransport>(1);
  World world(options);
  const auto& stage = world.mesh("pp=2,tp=2").submesh("pp", 1);
  const auto x = distribute(exact_tensor({4}), Layout::parse(stage, "[tp=S(0)]"));
  const auto sum = (x + x).sum();
  EXPECT_EQ(sharded(sum).shards()->local_tensors().size(), 0u);
  EXPECT_EQ(message_of([&] { sum.item(); }), message_of([&] { gather(sum); }));
  EXPECT_EQ(message_of([&] { gather(x); }),
            "the value of Float[4] [tp=S(0)] on mesh pp=2,tp=2 at pp=1 was asked for in a process that has none of the "
            "mesh's ranks");
  EXPECT_EQ(world.traffic().bytes(), 0);
}

}  // namespace
}  // namespace lockstep
