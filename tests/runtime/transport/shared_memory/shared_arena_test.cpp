// The memory in which tensors lie that other ranks read in place: who has which part of it, and what a fork gets of it.
#include "runtime/transport/shared_memory/shared_arena.h"

#include <ATen/Functions.h>
#include <c10/core/CPUAllocator.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <sys/wait.h>

#include <csignal>

#include "core/error.h"
#include "core/files/proc_value.h"
#include "runtime/transport/shared_memory/lent_buffers.h"
#include "runtime/transport/streams/shared_tensors.h"

namespace lockstep {
namespace {

constexpr size_t kMiB = size_t{1} << 20;

/// Whoever gives back whatever in whatever order: nobody's bytes are given twice, and in the end they are whole again.
RC_GTEST_PROP(FreeBlocks, GiveEveryByteToOneAtATime, ()) {
  constexpr uint64_t kBytes = 200;
  FreeBlocks blocks(kBytes);
  std::vector<bool> taken(kBytes);
  std::vector<std::pair<uint64_t, uint64_t>> held;
  const auto mark = [&](uint64_t start, uint64_t bytes, bool value) {
    for (uint64_t i = start; i < start + bytes; ++i) {
      RC_ASSERT(taken.at(i) != value);
      taken[i] = value;
    }
  };
  const auto longest_free = [&] {
    uint64_t longest = 0, run = 0;
    for (const bool is_taken : taken) longest = std::max(longest, run = is_taken ? 0 : run + 1);
    return longest;
  };
  const auto give = [&](size_t which) {
    const auto [start, bytes] = held[which];
    mark(start, bytes, false);
    blocks.give(start, bytes);
    held.erase(held.begin() + static_cast<ptrdiff_t>(which));
  };
  for (int i = *rc::gen::inRange(0, 60); i > 0; --i) {
    if (!held.empty() && *rc::gen::inRange(0, 3) == 0) {
      give(*rc::gen::inRange<size_t>(0, held.size()));
      continue;
    }
    const auto bytes = *rc::gen::inRange<uint64_t>(1, 70);
    const auto start = blocks.take(bytes);
    RC_ASSERT(start.has_value() == (longest_free() >= bytes));
    if (!start) continue;
    mark(*start, bytes, true);
    held.emplace_back(*start, bytes);
  }
  while (!held.empty()) give(held.size() - 1);
  RC_ASSERT(blocks.take(kBytes) == std::optional<uint64_t>(0));
}

TEST(FreeBlocks, TheSmallestThatIsLargeEnoughIsTaken) {
  FreeBlocks blocks(100);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(blocks.take(10), i * 10);
  blocks.give(0, 30);
  blocks.give(50, 10);
  blocks.give(70, 20);
  EXPECT_EQ(blocks.take(10), 50);
  EXPECT_EQ(blocks.take(11), 70);
  EXPECT_EQ(blocks.take(31), std::nullopt);
}

TEST(LentBuffers, TellsHowManyFromTheFirstAreClosed) {
  LentBuffers book;
  const uint64_t a = book.open(), b = book.open(), c = book.open();
  book.close(b);
  EXPECT_EQ(book.closed(), 0u) << "the lender must keep the first";
  book.close(a);
  EXPECT_EQ(book.closed(), 2u);
  const uint64_t d = book.open();
  book.close(d);
  book.close(c);
  EXPECT_EQ(book.closed(), 4u);
}

TEST(SharedArena, BlocksAreAlignedApartAndUsedAgain) {
  const auto arena = SharedArena::create(4 * kMiB);
  ASSERT_TRUE(arena);
  auto* first = static_cast<char*>(arena->allocate(kMiB));
  auto* second = static_cast<char*>(arena->allocate(kMiB));
  ASSERT_TRUE(first && second);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(first) % 64, 0u);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(second) % 64, 0u);
  EXPECT_GE(second - first, static_cast<ptrdiff_t>(kMiB));
  EXPECT_NE((second - first) % 4096, 0) << "the same cache sets";
  EXPECT_TRUE(arena->holds(first, kMiB));
  EXPECT_FALSE(arena->holds(first, 5 * kMiB));
  int elsewhere = 0;
  EXPECT_FALSE(arena->holds(&elsewhere));
  EXPECT_EQ(arena->allocate(3 * kMiB), nullptr);
  arena->release(first);
  EXPECT_EQ(arena->allocate(kMiB), first);
  EXPECT_THROW(arena->release(second + 64), std::exception);
}

TEST(SharedArena, PagesOfLargeBlocksGoBack) {
  const auto arena = SharedArena::create(2 * SharedArena::kReturned);
  for (const bool large : {false, true}) {
    const size_t bytes = large ? SharedArena::kReturned : kMiB;
    auto* block = static_cast<char*>(arena->allocate(bytes));
    ASSERT_TRUE(block);
    block[bytes / 2] = 'x';
    arena->release(block);
    ASSERT_EQ(arena->allocate(bytes), block);
    EXPECT_EQ(block[bytes / 2], large ? '\0' : 'x');
    arena->release(block);
  }
}

TEST(SharedArena, OthersReadItAndCannotWrite) {
  const auto arena = SharedArena::create(kMiB);
  auto* block = static_cast<int*>(arena->allocate(64));
  const auto descriptor = arena->read_only();
  const MappedMemory seen(descriptor, arena->bytes(), /*writable=*/false);
  *block = 77;
  const auto offset = reinterpret_cast<uintptr_t>(block) - arena->address();
  EXPECT_EQ(*reinterpret_cast<const int*>(static_cast<const char*>(seen.get()) + offset), 77);
  EXPECT_THROW(MappedMemory(descriptor, arena->bytes()), TransportError);
  EXPECT_THROW(MappedMemory(descriptor, arena->bytes() - 4096, false), TransportError);
}

TEST(SharedArena, IsNoneWhereTheSystemGivesNone) { EXPECT_EQ(SharedArena::create(~size_t{0} / 2 + 1), nullptr); }

TEST(SharedTensors, LieInTheArenaIfTheyAreLarge) {
  const auto* arena = share_tensors();
  ASSERT_TRUE(arena);
  EXPECT_EQ(share_tensors(), arena);
  EXPECT_GE(arena->bytes(), static_cast<size_t>(memory_bytes())) << "tensors may take all there is";
  const auto large = at::ones({1 << 14}), small = at::ones({100});
  EXPECT_TRUE(arena->holds(large.const_data_ptr(), large.nbytes()));
  EXPECT_FALSE(arena->holds(small.const_data_ptr()));
  auto grown = at::ones({10});
  grown.resize_({1 << 15});
  EXPECT_TRUE(arena->holds(grown.const_data_ptr()));
  EXPECT_EQ(grown[9].item<float>(), 1);
}

TEST(SharedTensors, CopyAsManyBytesAsTheyAreTold) {
  ASSERT_TRUE(share_tensors());
  const std::vector<char> from(32, 'x');
  std::vector<char> to(32, '-');
  c10::GetCPUAllocator()->copy_data(to.data(), from.data(), 16);
  EXPECT_EQ(std::string(to.begin(), to.end()), std::string(16, 'x') + std::string(16, '-'));
}

/// How a child that does `work` ends: its exit code, or minus the signal's number.
template <class Work>
int forked(const Work& work) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(work());
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

/// Memory that both see would let a child change its parent's tensors.
TEST(SharedTensors, AForkHasItsOwnAndNoneOfItsParents) {
  constexpr int64_t kCount = 1 << 15;  // what one thread fills: a forked process has no other
  const auto* arena = share_tensors();
  const auto mine = at::full({kCount}, 9.0F);
  EXPECT_EQ(forked([&] {
              const auto own = at::full({kCount}, 7);
              return share_tensors() || arena->holds(own.const_data_ptr()) ? 1 : own[5].item<int>();
            }),
            7);
  EXPECT_NE(forked([&] { return static_cast<int>(static_cast<const float*>(mine.const_data_ptr())[5]); }), 9);
  EXPECT_EQ(mine[5].item<float>(), 9);
}

}  // namespace
}  // namespace lockstep
