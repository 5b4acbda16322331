// Shared memory whose other side may hold anything, and payloads that are read where they lie.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <thread>

#include "core/files/pass_descriptor.h"
#include "fuzz/trials/streams.h"
#include "runtime/transport/streams/stream_transport.h"

namespace lockstep {
namespace {

using std::chrono::milliseconds;
using testing::message_of;
using testing::problem;
using testing::StreamKind;
using testing::wait_for;

/// Memory of which the other side is out of its mind: every value in it is possible.
struct Broken {
  Broken() : seen(memory) {
    auto [left, right] = testing::socket_pair();
    std::vector<std::unique_ptr<Stream>> streams(2);
    streams[1] = std::make_unique<MemoryStream>(std::move(left), memory, 0);
    other = std::move(right);
    zero = std::make_unique<StreamTransport>(0, std::move(streams), milliseconds{500});
  }
  std::string problem() {
    return testing::problem([&] { wait_for(*zero, 1, 0); });
  }
  FileDescriptor memory = create_pair_memory(), other;
  MappedPair seen;
  std::unique_ptr<StreamTransport> zero;
};

constexpr const char* kDamaged =
    "rank 0 waits for rank 1, whose connection is gone: its counters in shared memory are damaged";

TEST(BrokenMemory, ACounterThatClaimsMoreThanThereIsEndsInAnError) {
  for (const uint64_t written : {uint64_t{kPipeBytes + 1}, ~uint64_t{0}, uint64_t{1} << 63}) {
    Broken broken;
    broken.seen->counters[1].written = written;
    EXPECT_EQ(broken.problem(), kDamaged);
  }
}

TEST(BrokenMemory, ACounterOfWhatWasNeverSentEndsInAnErrorToo) {
  Broken broken;
  broken.seen->counters[0].read = 77;
  broken.zero->post(message_of(0, 1, 0, 8));
  EXPECT_FALSE(broken.zero->is_sending());  // nobody is there to take it
  EXPECT_EQ(broken.problem(), kDamaged);
}

/// Once both have looked at each other, large payloads are read where they lie.
TEST(LentMemory, IsReadByTheOtherAndMayChangeOnceItWas) {
  const auto both = testing::connected_transports(2, StreamKind::kMemory, milliseconds{5000});
  const auto expected = message_of(0, 1, 5, 3'000'000).payload.copy();
  Bytes mine(expected.size());
  std::thread other([&] {
    for (int turn = 0; turn < 3; ++turn) {
      EXPECT_EQ(wait_for(*both[1], 0, 1).bytes, expected) << turn;
      both[1]->post(message_of(1, 0, 0, 1));
    }
  });
  for (int turn = 0; turn < 3; ++turn) {
    mine = expected;
    Message message{0, 1, {.collective = 5, .bytes = mine.size()}, {{ConstSpan(mine)}, nullptr}};
    both[0]->post(std::move(message));
    EXPECT_TRUE(turn == 0 || both[0]->is_sending());
    while (both[0]->is_sending()) both[0]->progress();
    std::fill(mine.begin(), mine.end(), std::byte{0xff});
    wait_for(*both[0], 1, 0);
  }
  other.join();
}

/// Two ranks that have failed, each with something lent to the other, do not wait for each other until the timeout.
TEST(LentMemory, IsNotWaitedForLongAtTheEnd) {
  auto both = testing::connected_transports(2, StreamKind::kMemory, std::chrono::seconds{20});
  std::thread other([&] { wait_for(*both[1], 0, 1); });
  both[0]->post(message_of(0, 1, 0, 1));
  other.join();
  both[1]->post(message_of(1, 0, 0, 1));
  wait_for(*both[0], 1, 0);
  for (int rank : {0, 1}) both[static_cast<size_t>(rank)]->post(message_of(rank, 1 - rank, 1, 1'000'000));
  EXPECT_TRUE(both[0]->is_sending() && both[1]->is_sending());
  const auto start = std::chrono::steady_clock::now();
  both[0].reset();
  EXPECT_EQ(problem([&] { wait_for(*both[1], 0, 1); }),
            "rank 1 waits for rank 0, whose connection is gone: its memory cannot be read");
  both[1].reset();
  EXPECT_LT(std::chrono::steady_clock::now() - start, milliseconds{5000});
}

/// Both sides of one stream, after each has seen that it can read the other's memory.
struct Lenders {
  Lenders() : seen(memory) {
    auto [left, right] = testing::socket_pair();
    zero = std::make_unique<MemoryStream>(std::move(left), memory, 0);
    one = std::make_unique<MemoryStream>(std::move(right), memory, 1);
    for (auto* stream : {zero.get(), one.get()}) stream->receive({});
  }
  std::string problem(uint64_t address, uint64_t bytes, size_t wanted = 100'000) {
    const LentPart from[] = {{address, bytes}};
    Bytes buffer(wanted);
    const MutableSpan to[] = {buffer};
    return zero->fetch(from, to) ? "" : zero->closed();
  }
  FileDescriptor memory = create_pair_memory();
  MappedPair seen;
  std::unique_ptr<MemoryStream> zero, one;
};

TEST(LentMemory, WhatCannotBeReadEndsInAnError) {
  const Bytes there(100'000);
  const auto address = reinterpret_cast<uintptr_t>(there.data());
  EXPECT_TRUE(Lenders().zero->can_fetch());
  EXPECT_EQ(Lenders().problem(address, there.size()), "");
  EXPECT_EQ(Lenders().problem(8, there.size()), "its memory cannot be read");
  EXPECT_EQ(Lenders().problem(address, there.size() - 1), "its memory cannot be read");
  EXPECT_EQ(Lenders().problem(address, ~uint64_t{0}), "its memory cannot be read");
  Lenders gone;
  gone.one.reset();
  EXPECT_EQ(gone.problem(address, there.size()), "its memory cannot be read");
}

TEST(LentMemory, IsWithdrawnWhenItsStreamEndsByDamage) {
  const Bytes there(100'000);
  const auto address = reinterpret_cast<uintptr_t>(there.data());
  Lenders lenders;
  lenders.seen->counters[1].read = 77;  // more than was written
  const ConstSpan byte[] = {ConstSpan(there).first(1)};
  EXPECT_EQ(lenders.one->send(byte), 0u);
  EXPECT_EQ(lenders.one->closed(), "its counters in shared memory are damaged");
  EXPECT_EQ(lenders.problem(address, there.size()), "its memory cannot be read");
}

/// The number of a process says nothing: a process of another namespace may bear it.
TEST(LentMemory, AnotherProcessIsFoundOut) {
  const auto memory = create_pair_memory();
  const MappedPair seen(memory);
  auto [left, right] = testing::socket_pair();
  MemoryStream zero(std::move(left), memory, 0), one(std::move(right), memory, 1);
  seen->sides[1].process = ::getppid();
  zero.receive({});
  EXPECT_FALSE(zero.can_fetch());
  const Bytes large(1'000'000);
  const ConstSpan parts[] = {ConstSpan(large)};
  EXPECT_FALSE(one.should_lend(parts));
  one.receive({});
  EXPECT_TRUE(one.can_fetch());
}

/// Two ranks of which each has an arena of its own, mapped by the other; `bytes` lie in the first one's.
struct Neighbours {
  Neighbours() {
    auto [left, right] = testing::socket_pair();
    zero = std::make_unique<MemoryStream>(std::move(left), memory, 0, arenas[0].get());
    one = std::make_unique<MemoryStream>(std::move(right), memory, 1, arenas[1].get());
    for (auto* stream : {zero.get(), one.get()}) stream->receive({});
    for (auto& byte : bytes) byte = std::byte{5};
  }
  /// Withdraws what was lent.
  void damage() {
    seen->counters[0].read = 77;
    const ConstSpan byte[] = {bytes.first(1)};
    zero->send(byte);
  }
  static constexpr size_t kBytes = 100'000;
  FileDescriptor memory = create_pair_memory();
  MappedPair seen{memory};
  std::array<std::unique_ptr<SharedArena>, 2> arenas{SharedArena::create(1 << 20), SharedArena::create(1 << 20)};
  MutableSpan bytes{static_cast<std::byte*>(arenas[0]->allocate(kBytes)), kBytes};
  std::vector<LentPart> lent{{reinterpret_cast<uintptr_t>(bytes.data()), kBytes}, {0, 0}};
  std::unique_ptr<MemoryStream> zero, one;
};

TEST(ArenaMemory, IsReadWhereItLiesUntilTheLeaseIsDropped) {
  Neighbours both;
  const ConstSpan parts[] = {both.bytes, {}}, small[] = {both.bytes.first(1000)}, elsewhere[] = {Bytes(100'000)};
  EXPECT_TRUE(both.zero->should_lend(parts));
  EXPECT_FALSE(both.zero->should_lend(small));
  EXPECT_FALSE(both.zero->should_lend(elsewhere)) << "less than is worth a system call";
  const uint64_t first = both.zero->lend(), second = both.zero->lend();
  auto loan = both.one->borrow(both.lent), later = both.one->borrow(both.lent);
  ASSERT_TRUE(loan && later);
  ASSERT_EQ(loan->parts.size(), 2u);
  EXPECT_EQ(loan->parts[0].size(), both.bytes.size());
  EXPECT_EQ(loan->parts[0][99'999], std::byte{5});
  EXPECT_NE(loan->parts[0].data(), both.bytes.data()) << "another mapping";
  later.reset();
  EXPECT_TRUE(both.one->settle());
  EXPECT_LT(both.zero->fetched(), first) << "the first one is still read";
  loan.reset();
  EXPECT_LT(both.zero->fetched(), first) << "nobody has said so yet";
  EXPECT_TRUE(both.one->settle());
  EXPECT_EQ(both.zero->fetched(), second);
}

TEST(ArenaMemory, IsCopiedWhereItIsToGoElsewhere) {
  Neighbours both;
  Bytes to(both.bytes.size());
  const MutableSpan parts[] = {to};
  EXPECT_TRUE(both.one->fetch(both.lent, parts));
  EXPECT_EQ(to, Bytes(to.size(), std::byte{5}));
  EXPECT_EQ(both.zero->fetched(), 1u);
}

/// A rank that has failed uses its memory for something else: what was read of it is not to be used.
TEST(ArenaMemory, ALoanThatWasWithdrawnEndsInAnError) {
  Neighbours both;
  auto loan = both.one->borrow(both.lent);
  both.damage();
  EXPECT_EQ(loan->parts[0][0], std::byte{5}) << "it can be read, whatever lies there";
  loan.reset();
  EXPECT_FALSE(both.one->settle());
  EXPECT_EQ(both.one->closed(), "its memory cannot be read");
  EXPECT_FALSE(both.one->can_receive());
}

TEST(ArenaMemory, NothingIsBorrowedOfWhoGivesNone) {
  Lenders both;
  const LentPart nothing[] = {{0, 0}};
  EXPECT_FALSE(both.zero->borrow(nothing));
}

TEST(ArenaMemory, WhatLiesOutsideIsNotBorrowed) {
  Neighbours both;
  const auto start = both.arenas[0]->address(), end = start + both.arenas[0]->bytes();
  for (const auto& [address, bytes] : {std::pair<uint64_t, uint64_t>{start - 8, 16},
                                       {end - 8, 16},
                                       {end, 1},
                                       {start, ~uint64_t{0}},
                                       {8, 8},
                                       {~uint64_t{0}, 8}}) {
    const LentPart part[] = {{address, bytes}};
    EXPECT_FALSE(both.one->borrow(part)) << address - start << " " << bytes;
  }
  const LentPart last[] = {{end - 8, 8}};
  EXPECT_TRUE(both.one->borrow(last));
}

/// What comes with the first bell is the arena that was spoken of, or is left alone; what is lent comes in other ways.
TEST(ArenaMemory, OnlyWhatCannotShrinkIsMapped) {
  for (const bool sealed : {false, true}) {
    const auto memory = create_pair_memory();
    const MappedPair seen(memory);
    auto [left, right] = testing::socket_pair();
    MemoryStream zero(std::move(left), memory, 0);
    FileDescriptor arena(::memfd_create("loose", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    ASSERT_EQ(::ftruncate(arena.get(), 4096), 0);
    if (sealed) arena = create_sealed_memory(4096);
    seen->sides[1].arena_bytes = 4096;
    const std::byte bell{};
    for (int i = 0; i < 2; ++i) ASSERT_TRUE(send_with(right, std::span(&bell, 1), arena));
    seen->sides[1].has_arena = 1;
    for (int i = 0; i < 2; ++i) zero.receive({});
    EXPECT_EQ(seen->sides[0].maps, sealed ? 1u : 0u);
    EXPECT_EQ(zero.can_fetch(), sealed);
    EXPECT_EQ(zero.closed(), "");
  }
}

TEST(BrokenMemory, BytesThatAreNoMessageAreRefused) {
  Broken broken;
  broken.seen->counters[1].written = 5000;  // of zeros
  EXPECT_EQ(broken.problem(), "rank 1 sent rank 0 what is no message");
}

TEST(PairMemory, OnlyWhatCannotShrinkIsMapped) {
  EXPECT_NO_THROW(MappedPair{create_pair_memory()});
  const FileDescriptor loose(::memfd_create("loose", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(::ftruncate(loose.get(), sizeof(PairMemory)), 0);
  EXPECT_THROW(MappedPair{loose}, TransportError);
  ASSERT_EQ(::fcntl(loose.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL), 0);
  EXPECT_NO_THROW(MappedPair{loose});
  const FileDescriptor small(::memfd_create("small", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(::fcntl(small.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL), 0);
  EXPECT_THROW(MappedPair{small}, TransportError);
  EXPECT_THROW(MappedPair{FileDescriptor(::open("/dev/null", O_RDWR))}, TransportError);
}

}  // namespace
}  // namespace lockstep
