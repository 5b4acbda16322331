// Ordered sums over 1 to 33 shards, moved anywhere, against a plain recursion; and with every fault of delivery that
// there is: the same property fails.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "core/error.h"
#include "runtime/transport/faulty.h"
#include "runtime/transport/simulated.h"
#include "tests/support/mutants.h"
#include "tests/support/ordered_values.h"

namespace lockstep::testing {
namespace {

std::shared_ptr<Transport> messages(uint64_t seed) { return std::make_shared<SimulatedTransport>(seed); }

TEST(OrderedRedistribute, ArrivesByAssignment) {
  expect_holds([] {
    ordered_sum_arrives<float>({}, c10::kFloat);
    ordered_sum_arrives<double>({}, c10::kDouble);
    ordered_sum_arrives<float>({}, c10::kBFloat16);
  });
}

TEST(OrderedRedistribute, ArrivesOverMessages) {
  expect_holds([] {
    ordered_sum_arrives<float>({messages}, c10::kFloat);
    ordered_sum_arrives<float>({messages}, c10::kBFloat16);
  });
}

// Faults that no header shows: what arrives is well formed, and wrong.

/// Exchanges the payloads of two messages of one collective that belong together, and posts them.
class Exchanges : public TransportWrapper {
 public:
  using Belong = bool (*)(const Message&, const Message&);
  Exchanges(std::shared_ptr<Transport> inner, Belong belong) : TransportWrapper(std::move(inner)), belong_(belong) {}

  void post(Message message) override {
    for (auto& held : held_) {
      if (!belong_(held, message) || held.header.bytes != message.header.bytes) continue;
      std::swap(held.payload, message.payload);
      break;
    }
    held_.push_back(std::move(message));
  }
  void progress() override {
    if (held_.empty()) return inner_->progress();
    for (auto& message : std::exchange(held_, {})) inner_->post(std::move(message));
  }
  bool is_sending() const override { return !held_.empty(); }

 private:
  Belong belong_;
  std::vector<Message> held_;
};

bool of_two_senders(const Message& a, const Message& b) {
  return a.destination == b.destination && a.source != b.source && a.header.group == b.header.group;
}
bool for_two_receivers(const Message& a, const Message& b) {
  return a.source == b.source && a.destination != b.destination && a.header.group == b.header.group;
}
bool of_two_groups(const Message& a, const Message& b) { return a.header.group != b.header.group; }
bool there_and_back(const Message& a, const Message& b) {
  return a.source == b.destination && a.destination == b.source;
}

template <Exchanges::Belong kBelong>
std::shared_ptr<Transport> exchanged(uint64_t seed) {
  return std::make_shared<Exchanges>(messages(seed), kBelong);
}

/// Every message of the first collective from rank 1 meets a fault.
template <FaultKind kKind>
std::shared_ptr<Transport> faulty(uint64_t seed) {
  return std::make_shared<FaultyTransport>(messages(seed), [](const Message& message) -> std::optional<FaultKind> {
    if (message.source != 1 || message.header.collective != 0) return std::nullopt;
    return kKind;
  });
}

/// Posts what rank 1 sends twice.
class Duplicates : public TransportWrapper {
 public:
  using TransportWrapper::TransportWrapper;
  void post(Message message) override {
    if (message.source == 1) inner_->post(message);
    inner_->post(std::move(message));
  }
};
std::shared_ptr<Transport> duplicated(uint64_t seed) { return std::make_shared<Duplicates>(messages(seed)); }

// Faults of what arrives, in place.

using Change = void (*)(at::Tensor& payload);
struct Changes : Observer {
  explicit Changes(Change what) : change(what) {}
  void received(const CollectiveEvent&, int, int, at::Tensor& payload) override {
    if (payload.numel() > 0) change(payload);
  }
  Change change;
};

void nodes_reversed(at::Tensor& payload) { payload = payload.flip(0); }
void counted_as_zero(at::Tensor& payload) { payload = at::zeros_like(payload); }
void one_ulp(at::Tensor& payload) {
  payload = payload.clone();
  payload.view({-1})[0] = at::nextafter(payload.view({-1})[0], at::full({}, 1e9, payload.options()));
}
void in_bfloat16(at::Tensor& payload) { payload = payload.to(at::kBFloat16).to(payload.scalar_type()); }
void one_node_added_to_the_next(at::Tensor& payload) {
  if (payload.size(0) < 2) return;
  payload = payload.clone();
  payload[1].add_(payload[0]);
  payload[0].zero_();
}
void elements_rolled(at::Tensor& payload) { payload = payload.roll(1, -1); }

struct DeliveryMutant {
  const char* fault;
  std::shared_ptr<Transport> (*transport)(uint64_t) = nullptr;
  Change change = nullptr;
};

constexpr DeliveryMutant kMutants[] = {
    {"two senders exchanged", exchanged<of_two_senders>},
    {"two receivers exchanged", exchanged<for_two_receivers>},
    {"two groups exchanged", exchanged<of_two_groups>},
    {"sent back what was sent", exchanged<there_and_back>},
    {"dropped", faulty<FaultKind::kDrop>},
    {"damaged", faulty<FaultKind::kCorrupt>},
    {"overtaken", faulty<FaultKind::kReorder>},
    {"of another group", faulty<FaultKind::kWrongGroup>},
    {"delivered twice", duplicated},
    {"nodes reversed", nullptr, nodes_reversed},
    {"nodes reversed in messages", messages, nodes_reversed},
    {"counted as zero", nullptr, counted_as_zero},
    {"one unit in the last place", nullptr, one_ulp},
    {"rounded on the wire", nullptr, in_bfloat16},
    {"a node added to the next", nullptr, one_node_added_to_the_next},
    {"elements one further", messages, elements_rolled},
};

TEST(DeliveryMutants, AreNoticed) {
  for (const auto& mutant : kMutants) {
    Changes changes(mutant.change);
    const Way way{mutant.transport, mutant.change ? &changes : nullptr};
    expect_noticed(mutant.fault, [&] { ordered_sum_arrives<float>(way, c10::kFloat); });
  }
}

}  // namespace
}  // namespace lockstep::testing
