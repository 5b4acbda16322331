// What a rank writes down of its collectives, and what its launcher makes of whatever it finds there.
#include "runtime/transport/flight/flight_record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstring>

#include "core/collective_kind.h"
#include "core/error.h"
#include "runtime/transport/streams/flight_recorder.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;

class Flight : public ::testing::Test {
 protected:
  void begin(uint64_t number, const std::string& module = "layers.3") {
    recorder_.begin({17, 1, Phase::kBackward, module, "mm", 2}, "dp_shard",
                    {.collective = number, .kind = static_cast<uint8_t>(CollectiveKind::kAllReduce)}, "Float");
  }

  /// Overwrites all of it with one byte, but for how many collectives there were.
  void scribble(int byte, uint64_t count) {
    const MappedMemory mapped(memory_, sizeof(FlightMemory));
    std::memset(mapped.get(), byte, sizeof(FlightMemory));
    static_cast<FlightMemory*>(mapped.get())->count = count;
  }

  FileDescriptor memory_ = create_flight_memory();
  FlightRecorder recorder_{memory_};
  FlightRecord record_{memory_, 4};
};

TEST_F(Flight, ShowsTheLastCollectiveAndWhomItWaitsFor) {
  EXPECT_FALSE(record_.last());
  begin(118);
  recorder_.sends(512);
  recorder_.waits_for(std::vector<int>{1, 3});
  const auto note = record_.last();
  ASSERT_TRUE(note);
  EXPECT_EQ(note->text(), "collective 118 (all_reduce of 512 bytes Float on dp_shard)");
  EXPECT_EQ(note->op_id, "step 17, microbatch 1, backward, layers.3, mm #2");
  EXPECT_EQ(note->op, "layers.3, mm");
  EXPECT_EQ(note->state, FlightState::kWaits);
  EXPECT_THAT(note->ranks, ElementsAre(1, 3));
  recorder_.end();
  EXPECT_EQ(record_.last()->state, FlightState::kDone);
  EXPECT_THAT(record_.last()->ranks, ElementsAre());
}

TEST_F(Flight, ADisagreementStaysOneWhenTheRankGivesUp) {
  begin(1);
  EXPECT_FALSE(record_.has_given_up());
  recorder_.disagrees_with(2);
  recorder_.give_up("they differ", std::vector<int>{0});
  EXPECT_TRUE(record_.has_given_up());
  EXPECT_EQ(record_.last()->state, FlightState::kDisagrees);
  EXPECT_THAT(record_.last()->ranks, ElementsAre(2));
  EXPECT_EQ(record_.error(), "they differ");
}

TEST_F(Flight, ARankThatLeavesIsEnding) {
  begin(1);
  EXPECT_FALSE(record_.is_ending());
  recorder_.leave();
  EXPECT_TRUE(record_.is_ending());
  EXPECT_FALSE(record_.has_given_up());
}

TEST_F(Flight, KeepsTheLastSixteen) {
  for (uint64_t number = 0; number < 50; ++number) begin(number);
  const auto notes = record_.all();
  ASSERT_EQ(notes.size(), 16U);
  EXPECT_EQ(notes.front().collective, 34U);
  EXPECT_EQ(notes.back().collective, 49U);
}

TEST_F(Flight, CutsLongNames) {
  begin(1, std::string(100, 'x') + ".end");
  EXPECT_THAT(record_.last()->op, ::testing::EndsWith("xxx.end, mm"));
  EXPECT_LT(record_.last()->op.size(), 70U);
}

TEST_F(Flight, LeavesOutWhatWasBeingWritten) {
  begin(1);
  begin(2);
  const MappedMemory mapped(memory_, sizeof(FlightMemory));
  static_cast<FlightMemory*>(mapped.get())->entries[2].sequence = 0;
  EXPECT_EQ(record_.last()->collective, 1U);
}

TEST_F(Flight, IsNotTrusted) {
  for (const int byte : {0x00, 0x1b, 0x41, 0xff}) {
    for (const uint64_t count : {uint64_t{0}, uint64_t{7}, ~uint64_t{0}}) {
      scribble(byte, count);
      const MappedMemory mapped(memory_, sizeof(FlightMemory));
      auto& entries = static_cast<FlightMemory*>(mapped.get())->entries;
      for (uint64_t age = 0; age < 16; ++age) entries[(count - age) % 16].sequence = count - age;
      for (const auto& note : record_.all()) {
        EXPECT_LE(note.state, FlightState::kDisagrees);
        EXPECT_LT(note.op_id.size() + note.text().size() + note.kind.size(), 400U);
        for (const int rank : note.ranks) EXPECT_LT(rank, 4);
        for (const char letter : note.op_id + note.text() + record_.error())
          EXPECT_TRUE(letter >= ' ' && letter <= '~');
      }
    }
  }
}

TEST_F(Flight, WantsMemoryOfItsOwnKind) {
  EXPECT_THROW(FlightRecorder(create_sealed_memory(100)), TransportError);
  EXPECT_THROW(FlightRecorder{FileDescriptor()}, TransportError);
}

TEST_F(Flight, CostsNextToNothing) {
  const std::vector<int> ranks{1, 2, 3};
  constexpr int kTimes = 100'000;
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < kTimes; ++i) {
    begin(static_cast<uint64_t>(i));
    recorder_.waits_for(ranks);
    recorder_.end();
  }
  const std::chrono::duration<double, std::nano> time = std::chrono::steady_clock::now() - start;
  RecordProperty("nanoseconds", std::to_string(time.count() / kTimes));
  EXPECT_LT(time.count() / kTimes, 5'000);  // 100 measured; this is for machines that do other things, too
}

}  // namespace
}  // namespace lockstep
