#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "fuzz/cases/tensors.h"
#include "runtime/context/observer.h"
#include "runtime/context/scopes.h"
#include "runtime/redistribution/gather.h"
#include "runtime/redistribution/redistribute.h"
#include "runtime/transport/faulty.h"
#include "runtime/transport/simulated.h"

namespace lockstep {
namespace {

using testing::exact_tensor;
using testing::same_bits;

/// Two redistributions over messages, of which one message meets a fault.
class Faults : public ::testing::Test {
 protected:
  /// The message of rank `source` in collective `number`.
  void inject(FaultKind kind, int source, uint64_t number) {
    transport_ = std::make_shared<FaultyTransport>(
        std::make_shared<SimulatedTransport>(5), [=](const Message& message) -> std::optional<FaultKind> {
          if (message.source != source || message.header.collective != number) return std::nullopt;
          return kind;
        });
  }

  at::Tensor run() {
    World::Options options;
    options.transport = transport_;
    world_ = testing::simulated_world({{"tp", 2}}, options);
    const auto& mesh = world_->mesh("tp=2");
    const auto whole =
        redistribute(distribute(exact_tensor({6, 2}), Layout::parse(mesh, "[tp=S(0)]")), Layout::replicated(mesh));
    return gather(
        redistribute(redistribute(whole, Layout::parse(mesh, "[tp=S(1)]")), Layout::parse(mesh, "[tp=S(0)]")));
  }

  std::string error() {
    try {
      run();
    } catch (const TransportError& error) {
      return error.what();
    }
    return "no error";
  }

  std::shared_ptr<FaultyTransport> transport_;
  std::unique_ptr<World> world_;
};

TEST_F(Faults, ADroppedMessageEndsTheRunInsteadOfHanging) {
  inject(FaultKind::kDrop, 1, 0);
  RunContext::current().begin_microbatch(0, 0);
  EXPECT_EQ(error(),
            "simulated transport: rank 0 waits for rank 1 and no message is in flight; in collective 0 (all_gather on "
            "tp) of step 0, microbatch 0, init, redistribute");
  EXPECT_EQ(transport_->injected(), 1);
}

TEST_F(Faults, ACorruptedPayloadIsNoticed) {
  inject(FaultKind::kCorrupt, 1, 0);
  EXPECT_THAT(error(), ::testing::HasSubstr("rank 0 got 24 damaged bytes from rank 1 in collective 0 "
                                            "all_gather Float"));
}

TEST_F(Faults, ADelayedMessageChangesNothing) {
  inject(FaultKind::kDelay, 1, 0);
  EXPECT_TRUE(same_bits(run(), exact_tensor({6, 2})));
  EXPECT_EQ(transport_->injected(), 1);
}

TEST_F(Faults, AMessageOfAnotherGroupIsRefusedWithADiff) {
  inject(FaultKind::kWrongGroup, 0, 1);
  EXPECT_THAT(error(), ::testing::HasSubstr("rank 1 and rank 0 disagree about a collective: group "));
}

TEST_F(Faults, AnOvertakenMessageIsRefusedWithADiff) {
  // Rank 1's message of collective 0 is overtaken by the next one to rank 0: posted only after it.
  transport_ = std::make_shared<FaultyTransport>(std::make_shared<SimulatedTransport>(5),
                                                 [](const Message& message) -> std::optional<FaultKind> {
                                                   if (message.source == 1 && message.header.collective == 0)
                                                     return FaultKind::kReorder;
                                                   return std::nullopt;
                                                 });
  World::Options options;
  options.transport = transport_;
  world_ = testing::simulated_world({{"tp", 2}}, options);
  transport_->post({1, 0, {7, 0, 0, 6, 0, 0}, {}});  // what overtakes it: a message of collective 7
  EXPECT_THAT(error(), ::testing::HasSubstr("collective 0 != 7"));
}

/// Vetoes the second collective.
struct Veto : Observer {
  void before_collective(const CollectiveEvent& event) override {
    kinds.push_back(event.kind);
    if (kinds.size() == 2) fail<Inconsistency>("vetoed");
  }
  std::vector<CollectiveKind> kinds;
};

TEST(Observers, MayVetoACollective) {
  const auto world = testing::simulated_world({{"tp", 2}});
  const auto& mesh = world->mesh("tp=2");
  Veto veto;
  const ObserverScope scope(world->observers(), veto);
  const auto x = distribute(exact_tensor({4}), Layout::parse(mesh, "[tp=P(sum)]"));
  redistribute(x, Layout::parse(mesh, "[tp=S(0)]"));
  EXPECT_THROW(redistribute(x, Layout::replicated(mesh)), Inconsistency);
  EXPECT_EQ(veto.kinds, (std::vector{CollectiveKind::kReduceScatter, CollectiveKind::kAllReduce}));
}

/// Collects op ids; ops that it dispatches itself are not observed.
struct Ids : Observer {
  void after_op(const OpEvent& event, std::span<const c10::IValue> results) override {
    ids.push_back(event.id.text());
    if (!results.empty() && results[0].isTensor()) at::add(results[0].toTensor(), 1);
  }
  std::vector<std::string> ids;
};

TEST(Observers, SeeModulePathsInForwardAndBackward) {
  const auto world = testing::simulated_world({{"tp", 2}});
  const auto& mesh = world->mesh("tp=2");
  Ids ids;
  const ObserverScope observer(world->observers(), ids);
  RunContext::current().begin_microbatch(3, 1);
  auto x = distribute(exact_tensor({4}), Layout::replicated(mesh)).requires_grad_();
  at::Tensor y;
  {
    const PhaseScope phase(Phase::kForward);
    const ModuleScope layer("layers.0");
    y = at::exp(x);
    const ModuleScope inner("norm");
    y = at::sin(y);
  }
  const PhaseScope phase(Phase::kBackward);
  y.sum().backward();
  EXPECT_THAT(ids.ids, ::testing::Contains("step 3, microbatch 1, forward, layers.0, exp #0"));
  EXPECT_THAT(ids.ids, ::testing::Contains("step 3, microbatch 1, forward, layers.0.norm, sin #0"));
  EXPECT_THAT(ids.ids, ::testing::Contains("step 3, microbatch 1, backward, layers.0.norm, cos #0"));
  EXPECT_THAT(ids.ids, ::testing::Contains("step 3, microbatch 1, backward, layers.0, mul.Tensor #0"));
  EXPECT_THAT(ids.ids, ::testing::Not(::testing::Contains(::testing::HasSubstr("add"))));
}

}  // namespace
}  // namespace lockstep
