// A rank whose device waits for bytes that never come gets an error that names the round, in time; one whose rounds end
// hears nothing.
#include "runtime/transport/device/round_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "fuzz/cases/tensors.h"
#include "runtime/transport/device/device_transport.h"
#include "tests/support/streams.h"

namespace lockstep {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

/// A device that ends rounds when it is told to.
struct ManualLink final : DeviceLink {
  void exchange(std::span<const DeviceSend>, std::span<const DeviceReceive>) override {
    if (holds_host && is_aborted_in_time()) fail<TransportError>("aborted");
  }
  uint64_t ended_rounds() override {
    if (is_broken) fail<TransportError>("the peer hung up");
    return ended;
  }
  void abort() override { ++aborts; }
  bool is_aborted_in_time() const {
    for (const auto end = Clock::now() + 5s; aborts == 0 && Clock::now() < end;) std::this_thread::sleep_for(5ms);
    return aborts > 0;
  }

  bool holds_host = false;  ///< in exchange(), until it is aborted
  std::atomic<uint64_t> ended = 0;
  std::atomic<bool> is_broken = false;
  std::atomic<int> aborts = 0;
};

const MessageHeader kHeader{.collective = 12, .kind = 1, .dtype = 6, .group = 0x4f};

/// What the watch says, within `most`; empty if it says nothing.
std::string problem_within(const RoundWatch& watch, std::chrono::milliseconds most) {
  for (const auto end = Clock::now() + most; Clock::now() < end; std::this_thread::sleep_for(5ms))
    if (auto text = testing::problem([&] { watch.check(); }); !text.empty()) return text;
  return "";
}

TEST(RoundWatch, NamesARoundThatDoesNotEnd) {
  ManualLink link;
  RoundWatch watch(link, 200ms);
  const auto start = Clock::now();
  watch.begin(kHeader, {1, 3});
  const auto text = problem_within(watch, 2200ms);
  EXPECT_GE(Clock::now() - start, 200ms);
  EXPECT_THAT(text, AllOf(HasSubstr("the devices' exchange of collective 12 "), HasSubstr("Float group 4f "),
                          HasSubstr("with ranks 1, 3 was given up after 0."),
                          HasSubstr("it has not ended, a rank of its group has died or stalls (which one it waits for "
                                    "cannot be known from here)")));
  EXPECT_TRUE(link.is_aborted_in_time());
  EXPECT_EQ(problem_within(watch, 200ms), text) << "it says so for ever";
  EXPECT_EQ(link.aborts, 1);
}

TEST(RoundWatch, NamesTheOldestOfThoseThatDoNotEnd) {
  ManualLink link;
  RoundWatch watch(link, 200ms);
  watch.begin(kHeader, {1, 3});
  auto later = kHeader;
  ++later.collective;
  watch.begin(later, {2});
  EXPECT_THAT(problem_within(watch, 2200ms), AllOf(HasSubstr("of collective 12 "), HasSubstr("with ranks 1, 3 was")));
}

TEST(RoundWatch, GoesByTheLastTimeout) {
  ManualLink link;
  RoundWatch watch(link, 60s);
  watch.begin(kHeader, {1});
  EXPECT_EQ(problem_within(watch, 200ms), "");
  watch.set_timeout(100ms);
  EXPECT_THAT(problem_within(watch, 5s), HasSubstr("was given up after 0."));
}

TEST(RoundWatch, SaysNothingOfRoundsThatEnd) {
  ManualLink link;
  RoundWatch watch(link, 300ms);
  for (uint64_t round = 1; round <= 4; ++round) {
    watch.begin(kHeader, {1});
    EXPECT_EQ(problem_within(watch, 100ms), "");
    link.ended = round;
  }
  EXPECT_EQ(problem_within(watch, 600ms), "");
  EXPECT_EQ(link.aborts, 0);
}

/// They are handed over at once, and the device takes them one after the other.
TEST(RoundWatch, GivesEachRoundItsTime) {
  ManualLink link;
  RoundWatch watch(link, 400ms);
  for (int round = 0; round < 3; ++round) watch.begin(kHeader, {1});
  for (uint64_t round = 1; round <= 3; ++round) {
    EXPECT_EQ(problem_within(watch, 250ms), "") << round;
    link.ended = round;
  }
  watch.begin({.collective = 13}, {1});
  EXPECT_THAT(problem_within(watch, 2400ms), HasSubstr("collective 13 "));
}

TEST(RoundWatch, TellsWhatTheLinkHasNoticedAtOnce) {
  ManualLink link;
  RoundWatch watch(link, 60s);
  watch.begin(kHeader, {1});
  link.is_broken = true;
  EXPECT_THAT(problem_within(watch, 2s), AllOf(HasSubstr("collective 12 "), HasSubstr(" s: the peer hung up (")));
}

TEST(RoundWatch, EndsWhileRoundsAreUnderWay) {
  ManualLink link;
  const auto start = Clock::now();
  {
    RoundWatch watch(link, 60s);
    watch.begin(kHeader, {1});
    EXPECT_EQ(problem_within(watch, 120ms), "");
  }
  EXPECT_LT(Clock::now() - start, 2s);
  EXPECT_EQ(link.aborts, 0);
}

/// Two ranks that have announced collective 5 to each other; the first one's device is `link`.
struct TwoRanks {
  explicit TwoRanks(std::unique_ptr<ManualLink> link, std::chrono::milliseconds timeout = 200ms)
      : first(streams[0], std::move(link), timeout), second(streams[1], std::make_unique<ManualLink>(), 60s) {
    first.post(testing::message_of(0, 1, 5, 8));
    second.post(testing::message_of(1, 0, 5, 8));
    while (!first.arrived(1, 0)) first.progress();
  }
  bool receive() {
    const MutableSpan parts[] = {bytes};
    return first.receive(1, 0, parts);
  }

  std::vector<std::shared_ptr<StreamTransport>> streams =
      testing::connected_transports(2, testing::StreamKind::kMemory, 20s);
  DeviceTransport first, second;
  Bytes bytes = Bytes(8);
};

TEST(RoundWatch, EveryCallOfTheTransportThrowsOnceARoundIsLost) {
  auto link = std::make_unique<ManualLink>();
  auto& device = *link;
  TwoRanks ranks(std::move(link));
  EXPECT_TRUE(ranks.receive());
  EXPECT_TRUE(device.is_aborted_in_time());
  EXPECT_THROW(ranks.first.post(testing::message_of(0, 1, 6, 8)), TransportError);
  EXPECT_THROW(ranks.first.progress(), TransportError);
  EXPECT_THROW(ranks.first.send_more(), TransportError);
  EXPECT_THAT(testing::problem([&] { ranks.first.arrived(1, 0); }),
              AllOf(HasSubstr("collective 5 "), HasSubstr("with ranks 1 was given up")));
}

TEST(RoundWatch, GoesByTheTimeoutThatTheTransportWasToldLast) {
  auto link = std::make_unique<ManualLink>();
  auto& device = *link;
  TwoRanks ranks(std::move(link), 60s);
  EXPECT_TRUE(ranks.receive());
  ranks.first.set_timeout(100ms);
  EXPECT_TRUE(device.is_aborted_in_time());
}

/// For headers another transport waits, below others that change something.
TEST(TransportTimeout, GoesThroughEveryWrapper) {
  auto streams = testing::connected_transports(2, testing::StreamKind::kMemory, 60s);
  TransportWrapper wrapped(std::make_shared<DeviceTransport>(streams[0], std::make_unique<ManualLink>(), 60s));
  wrapped.set_timeout(100ms);
  const auto start = Clock::now();
  const auto text = testing::problem([&] {
    while (!wrapped.arrived(1, 0)) wrapped.progress();
  });
  EXPECT_THAT(text, HasSubstr("rank 0 has waited 0 s for rank 1"));
  EXPECT_LT(Clock::now() - start, 20s);
}

TEST(RoundWatch, FreesAHostThatTheLinkHolds) {
  auto link = std::make_unique<ManualLink>();
  link->holds_host = true;
  TwoRanks ranks(std::move(link));
  EXPECT_THAT(testing::problem([&] { ranks.receive(); }), HasSubstr("with ranks 1 was given up after 0."));
}

}  // namespace
}  // namespace lockstep
