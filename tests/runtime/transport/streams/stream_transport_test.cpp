// Messages between processes, over sockets, shared memory and Gloo: all bytes in order, straight to where they belong,
// and an error that says who when a rank is gone, silent, or sends what is no message.
#include "runtime/transport/streams/stream_transport.h"

#include <gtest/gtest.h>

#include <thread>

#include "fuzz/trials/streams.h"
#include "tests/runtime/transport/process_group/gloo_transports.h"

namespace lockstep {
namespace {

using std::chrono::milliseconds;
using testing::message_of;
using testing::problem;
using testing::StreamKind;
using testing::wait_for;

/// Over which streams; nothing: over Gloo.
class Streams : public ::testing::TestWithParam<std::optional<StreamKind>> {
 protected:
  static std::vector<std::shared_ptr<StreamTransport>> transports(int world, milliseconds timeout) {
    return GetParam() ? testing::connected_transports(world, *GetParam(), timeout)
                      : testing::gloo_transports(world, timeout);
  }
  void connect(milliseconds timeout) {
    auto both = transports(2, timeout);
    zero_ = std::move(both[0]);
    one_ = std::move(both[1]);
  }
  std::shared_ptr<StreamTransport> zero_, one_;
};

INSTANTIATE_TEST_SUITE_P(Over, Streams, ::testing::Values(StreamKind::kSocket, StreamKind::kMemory, std::nullopt),
                         [](const auto& on) {
                           return !on.param ? "Gloo" : on.param == StreamKind::kSocket ? "Socket" : "Memory";
                         });

TEST_P(Streams, CarryMessagesOfAnySizeInOrder) {
  connect(milliseconds{5000});
  const size_t sizes[] = {
      0,      1,         39, 40, 41, 4096, kPipeBytes - 40, kPipeBytes - 1, kPipeBytes, kPipeBytes + 1, 2 * kPipeBytes,
      262144, 5'000'001, 3};
  std::thread sender([&] {
    for (size_t i = 0; i < std::size(sizes); ++i) zero_->post(message_of(0, 1, i, sizes[i]));
    wait_for(*zero_, 1, 0);  // lets the rest out
  });
  for (size_t i = 0; i < std::size(sizes); ++i) {
    const auto got = wait_for(*one_, 0, 1);
    const auto sent = message_of(0, 1, i, sizes[i]);
    EXPECT_EQ(got.header, sent.header);
    EXPECT_EQ(got.bytes, sent.payload.copy());
  }
  one_->post(message_of(1, 0, 0, 10));
  sender.join();
}

/// Parts of a message lie anywhere on both sides, and are cut differently.
TEST_P(Streams, PartsAreGatheredAndScattered) {
  connect(milliseconds{5000});
  const size_t total = 1'000'000;
  const auto whole = message_of(0, 1, 9, total).payload.copy();
  std::thread sender([&] {
    auto message = message_of(0, 1, 9, total);
    const ConstSpan bytes = message.payload.parts[0];
    message.payload.parts.clear();
    for (size_t first = 0, size = 0; first < total; first += size, size = size * 2 + 1)
      message.payload.parts.push_back(bytes.subspan(first, std::min(size, total - first)));
    zero_->post(std::move(message));
    wait_for(*zero_, 1, 0);
  });
  Bytes got(total);
  std::vector<MutableSpan> parts;
  for (size_t first = 0; first < total; first += 7777)
    parts.push_back(MutableSpan(got).subspan(first, std::min<size_t>(7777, total - first)));
  while (!one_->arrived(0, 1)) one_->progress();
  while (!one_->receive(0, 1, parts)) one_->progress();
  EXPECT_EQ(got, whole);
  one_->post(message_of(1, 0, 0, 1));
  sender.join();
}

TEST_P(Streams, BothSidesMaySendMoreThanTheStreamHolds) {
  connect(milliseconds{5000});
  const auto run = [](StreamTransport& mine, int rank) {
    mine.post(message_of(rank, 1 - rank, 7, 20'000'000));
    EXPECT_EQ(wait_for(mine, 1 - rank, rank).bytes.size(), 20'000'000U);
    while (mine.is_sending()) mine.progress();
  };
  std::thread other([&] { run(*one_, 1); });
  run(*zero_, 0);
  other.join();
}

TEST_P(Streams, ManyRanksExchangeAtOnce) {
  constexpr int kRanks = 4;
  const auto transports = Streams::transports(kRanks, milliseconds{5000});
  const auto run = [&](int rank) {
    auto& mine = *transports[static_cast<size_t>(rank)];
    for (uint64_t number = 0; number < 50; ++number) {
      const size_t bytes = number % 7 == 0 ? 700'000 : 100 + number;
      for (int other = 0; other < kRanks; ++other)
        if (other != rank) mine.post(message_of(rank, other, number + static_cast<uint64_t>(rank), bytes));
      for (int other = 0; other < kRanks; ++other) {
        if (other == rank) continue;
        const auto expected = message_of(other, rank, number + static_cast<uint64_t>(other), bytes);
        EXPECT_EQ(wait_for(mine, other, rank).bytes, expected.payload.copy());
      }
      while (mine.is_sending()) mine.progress();
    }
  };
  std::vector<std::thread> threads;
  for (int rank = 0; rank < kRanks; ++rank) threads.emplace_back(run, rank);
  for (auto& thread : threads) thread.join();
}

TEST_P(Streams, WhatIsLeftIsSentAtTheEnd) {
  connect(milliseconds{5000});
  std::thread sender([&] {
    zero_->post(message_of(0, 1, 1, 8'000'000));
    zero_.reset();
  });
  EXPECT_EQ(wait_for(*one_, 0, 1).bytes.size(), 8'000'000U);
  sender.join();
  EXPECT_EQ(problem([&] { wait_for(*one_, 0, 1); }),
            "rank 1 waits for rank 0, whose connection is gone: it was closed by the other side");
}

/// Behind what it had sent before, of any length.
TEST_P(Streams, TheLastWordsOfARankAreInTheErrorOfWhoWaitsForIt) {
  for (const auto& why : {std::string("token 8 is none\nand a stack trace"), std::string(5000, 'x'), std::string()}) {
    connect(milliseconds{5000});
    std::thread sender([&] {
      zero_->post(message_of(0, 1, 1, 3'000'000));
      zero_->say_last(why);
      zero_.reset();
    });
    EXPECT_EQ(wait_for(*one_, 0, 1).bytes.size(), 3'000'000U);
    const auto text = "rank 0 ended by an error: " + why.substr(0, why.find('\n'));
    EXPECT_EQ(problem([&] { wait_for(*one_, 0, 1); }), "rank 1 waits for rank 0: " + text.substr(0, 400));
    sender.join();
  }
}

/// Who waits for a rank that waited for that one hears of the first.
TEST_P(Streams, LastWordsArePassedOn) {
  const auto transports = Streams::transports(3, milliseconds{5000});
  transports[0]->say_last("token 8 is none");
  const auto one = problem([&] { wait_for(*transports[1], 0, 1); });
  EXPECT_EQ(one, "rank 1 waits for rank 0: rank 0 ended by an error: token 8 is none");
  transports[1]->say_last(one);
  EXPECT_EQ(problem([&] { wait_for(*transports[2], 1, 2); }),
            "rank 2 waits for rank 1: rank 0 ended by an error: token 8 is none");
}

TEST_P(Streams, LastWordsOfAnyLengthAreNone) {
  connect(milliseconds{5000});
  zero_->post({0, 1, {.kind = 0xff, .bytes = 401}, Payload::of(Bytes(401))});
  EXPECT_EQ(problem([&] { wait_for(*one_, 0, 1); }), "rank 0 sent rank 1 what is no message");
}

TEST_P(Streams, SilenceEndsInAnErrorThatSaysWhose) {
  connect(milliseconds{300});
  EXPECT_EQ(problem([&] { wait_for(*zero_, 1, 0); }),
            "rank 0 has waited 0 s for rank 1, which sends and takes nothing: it is stopped, or busy elsewhere");
}

TEST_P(Streams, WaitsLastAsLongAsTheLastTimeoutSays) {
  using Clock = std::chrono::steady_clock;
  connect(milliseconds{60000});
  std::thread late([&] {
    std::this_thread::sleep_for(milliseconds{600});
    one_->post(message_of(1, 0, 3, 10));
  });
  EXPECT_EQ(wait_for(*zero_, 1, 0).bytes.size(), 10U) << "later than what comes next";
  late.join();
  zero_->set_timeout(milliseconds{300});
  const auto start = Clock::now();
  EXPECT_NE(problem([&] { wait_for(*zero_, 1, 0); }), "");
  EXPECT_LT(Clock::now() - start, milliseconds{20000});
}

TEST_P(Streams, APeerThatTakesNothingEndsInAnErrorToo) {
  connect(milliseconds{300});
  zero_->post(message_of(0, 1, 0, 30'000'000));
  const auto what = problem([&] {
    while (zero_->is_sending()) zero_->progress();
  });
  EXPECT_NE(what.find("for rank 1, which sends and takes nothing"), what.npos) << what;
}

/// Computing for longer than the timeout between two collectives is no silence.
TEST_P(Streams, PatienceBeginsWithEveryWait) {
  connect(milliseconds{300});
  std::thread other([&] {
    for (uint64_t number = 0; number < 2; ++number) {
      wait_for(*one_, 0, 1);
      std::this_thread::sleep_for(milliseconds{100});
      one_->post(message_of(1, 0, number, 1));
    }
  });
  zero_->post(message_of(0, 1, 0, 1));
  wait_for(*zero_, 1, 0);
  std::this_thread::sleep_for(milliseconds{50});
  zero_->post(message_of(0, 1, 1, 1));
  std::this_thread::sleep_for(milliseconds{500});
  EXPECT_EQ(problem([&] { wait_for(*zero_, 1, 0); }), "");
  other.join();
}

/// Nor is it when the wait had begun before, as for a gather under way: time in which this rank does not look does not
/// count.
TEST_P(Streams, TimeSpentElsewhereIsNoSilence) {
  connect(milliseconds{300});
  EXPECT_FALSE(zero_->arrived(1, 0));
  zero_->progress();
  std::this_thread::sleep_for(milliseconds{1100});
  EXPECT_FALSE(zero_->arrived(1, 0));
  EXPECT_EQ(problem([&] { zero_->progress(); }), "");
  EXPECT_NE(problem([&] { wait_for(*zero_, 1, 0); }), "");
}

/// Who looks need not sleep in poll() to learn what has come.
TEST(SocketStreams, LookTellsWhatHasCome) {
  const auto streams = testing::stream_pair(StreamKind::kSocket);
  Bytes got(3);
  const MutableSpan to[] = {got};
  EXPECT_EQ(streams[1]->receive(to), 0U);
  streams[1]->look(/*to_receive=*/true, /*to_send=*/false);
  EXPECT_FALSE(streams[1]->can_receive());
  const Bytes sent(3, std::byte{7});
  const ConstSpan from[] = {sent};
  EXPECT_EQ(streams[0]->send(from), 3U);
  streams[1]->look(true, false);
  EXPECT_TRUE(streams[1]->can_receive());
  EXPECT_EQ(streams[1]->receive(to), 3U);
  EXPECT_EQ(got, sent);
}

TEST(SocketStreams, RefuseWhatIsNoMessage) {
  auto [left, right] = testing::socket_pair();
  std::vector<std::unique_ptr<Stream>> streams(2);
  streams[1] = std::make_unique<SocketStream>(std::move(left));
  StreamTransport zero(0, std::move(streams), milliseconds{2000});
  const Bytes noise(200, std::byte{0x5a});
  ASSERT_EQ(::send(right.get(), noise.data(), noise.size(), 0), 200);
  EXPECT_EQ(problem([&] { wait_for(zero, 1, 0); }), "rank 1 sent rank 0 what is no message");
}

/// Nobody can be read from over a socket.
TEST(SocketStreams, RefuseALentPart) {
  auto [left, right] = testing::socket_pair();
  std::vector<std::unique_ptr<Stream>> streams(2);
  streams[1] = std::make_unique<SocketStream>(std::move(left));
  StreamTransport zero(0, std::move(streams), milliseconds{2000});
  const auto frame = to_frame(message_of(1, 0, 3, 24).header, /*lent=*/1);
  const Bytes part(sizeof(LentPart));
  ASSERT_EQ(::send(right.get(), frame.data(), frame.size(), 0), static_cast<ssize_t>(frame.size()));
  ASSERT_EQ(::send(right.get(), part.data(), part.size(), 0), static_cast<ssize_t>(part.size()));
  EXPECT_EQ(problem([&] { wait_for(zero, 1, 0); }), "rank 1 sent rank 0 what is no message");
}

TEST(SocketStreams, DamagedBytesAreNoticed) {
  for (const size_t bytes : {24, 1'000'000}) {
    const auto both = testing::connected_transports(2, StreamKind::kSocket, milliseconds{5000});
    auto message = message_of(0, 1, 3, bytes);
    message.checksum = checksum_of(message.payload) ^ 1;
    std::thread sender([&] {
      both[0]->post(message);
      while (both[0]->is_sending()) both[0]->progress();
    });
    EXPECT_EQ(problem([&] { wait_for(*both[1], 0, 1); }),
              fmt::format("rank 1 got {} damaged bytes from rank 0 in {}", bytes, message.header.text()));
    sender.join();
  }
}

TEST(Frame, KeepsEveryFieldAndRefusesOthers) {
  const MessageHeader header{~uint64_t{1}, 7, 3, -1, uint64_t{1} << 63, 12345};
  auto frame = to_frame(header);
  EXPECT_EQ(from_frame(frame), header);
  for (const size_t place : {0, 3, 29, 34, 39}) {
    auto other = frame;
    other[place] ^= std::byte{0x80};
    EXPECT_FALSE(from_frame(other)) << place;
  }
}

TEST(Frame, HoldsATebibyteAndNoByteMore) {
  MessageHeader header;
  header.bytes = uint64_t{1} << 40;
  EXPECT_EQ(from_frame(to_frame(header)), header);
  ++header.bytes;
  EXPECT_FALSE(from_frame(to_frame(header)));
}

}  // namespace
}  // namespace lockstep
