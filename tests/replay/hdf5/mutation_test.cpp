// Recordings that were damaged on purpose, read without the digest that would have told: whatever HDF5 does with them,
// the reader ends in time with a recording that validate() accepts, or with a FileError that names the file. A seed
// decides; LOCKSTEP_MUTATION_SEED repeats one, LOCKSTEP_SOAK runs 10,000 trials.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <random>

#include "core/sanitized.h"
#include "replay/format/validate.h"
#include "replay/hdf5/catalog.h"
#include "replay/hdf5/catalog_hdf5.h"
#include "replay/hdf5/hdf5.h"
#include "replay/store/recording_file.h"
#include "tests/support/recordings.h"

namespace lockstep::replay {
namespace {

using lockstep::testing::random_recording;
using Clock = std::chrono::steady_clock;
using ::testing::StartsWith;

/// Every day other trials; the seed is printed.
uint64_t first_seed() {
  if (const char* seed = std::getenv("LOCKSTEP_MUTATION_SEED")) return std::strtoull(seed, nullptr, 10);
  using Days = std::chrono::duration<int64_t, std::ratio<86400>>;
  const auto day = std::chrono::duration_cast<Days>(std::chrono::system_clock::now().time_since_epoch()).count();
  return static_cast<uint64_t>(day) * 1'000'000;
}

bool soaks() { return std::getenv("LOCKSTEP_SOAK") != nullptr; }

/// Changes 1 to 16 bytes, cuts the end off, or swaps two blocks. HDF5 looks at few bytes: half of the changes hit the
/// first 4 KiB or the last.
class Mutator {
 public:
  explicit Mutator(uint64_t seed) : engine_(seed) {}

  Bytes mutated(Bytes file) {
    const auto kind = up_to(9);
    if (kind == 0) {
      file.resize(up_to(file.size()));
    } else if (kind == 1) {
      swap_blocks(file);
    } else {
      for (auto changes = 1 << up_to(4); changes > 0; --changes) change(file[place(file.size())]);
    }
    return file;
  }

 private:
  std::size_t up_to(std::size_t most) { return std::uniform_int_distribution<std::size_t>(0, most)(engine_); }

  std::size_t place(std::size_t size) {
    const auto near = up_to(std::min<std::size_t>(size, 4096) - 1);
    const auto where = up_to(3);
    return where == 0 ? near : where == 1 ? size - 1 - near : up_to(size - 1);
  }

  void change(std::byte& byte) {
    static constexpr std::byte kEdges[] = {std::byte{0}, std::byte{1}, std::byte{0x7f}, std::byte{0x80},
                                           std::byte{0xff}};
    const auto kind = up_to(2);
    if (kind == 0) byte = kEdges[up_to(4)];
    if (kind == 1) byte ^= std::byte{1} << static_cast<int>(up_to(7));
    if (kind == 2) byte = static_cast<std::byte>(up_to(255));
  }

  void swap_blocks(Bytes& file) {
    const auto length = 1 + up_to(std::min<std::size_t>(file.size() / 2, 512) - 1);
    const auto half = file.size() / 2;
    auto* first = file.data() + up_to(half - length);
    std::swap_ranges(first, first + length, file.data() + half + up_to(half - length));
  }

  std::mt19937_64 engine_;
};

/// A sanitizer that finds HDF5 reading where it may not wants to print that, and is killed for it: a crash, too.

struct Counts {
  int refused = 0, crashed = 0, too_slow = 0, same = 0, different = 0;
};

void count_trial(const StepRecording& original, const Bytes& file, Counts& counts) {
  try {
    const auto read = from_file(file, "x.h5");
    validate(read);
    ++(read == original ? counts.same : counts.different);
  } catch (const FileError& error) {
    const std::string message = error.what();
    ASSERT_THAT(message, StartsWith("x.h5: "));
    const bool asked = message.find("signal 31") != message.npos;
    ASSERT_TRUE(kSanitized || !asked) << "HDF5 needs a system call: " << message;
    const bool crashed = asked || message.find("crashed") != message.npos,
               slow = message.find("longer than") != message.npos;
    ++(crashed ? counts.crashed : slow ? counts.too_slow : counts.refused);
  }
}

TEST(Mutations, EndInARecordingOrInAnError) {
  const auto first = first_seed();
  const auto end = Clock::now() + std::chrono::seconds(15);
  Counts counts;
  uint64_t seed = first;
  for (; soaks() ? seed < first + 10'000 : Clock::now() < end; ++seed) {
    SCOPED_TRACE(fmt::format("LOCKSTEP_MUTATION_SEED={}", seed));
    const auto original = random_recording(seed % 16);
    const auto begin = Clock::now();
    ASSERT_NO_FATAL_FAILURE(count_trial(original, Mutator(seed).mutated(to_file(original)), counts));
    ASSERT_LT(Clock::now() - begin, std::chrono::seconds(25));
  }
  std::printf(
      "%lu mutated recordings from seed %lu: %d refused, %d crashed the reader, %d took it too long, %d read the "
      "same, %d read with other content\n",
      seed - first, first, counts.refused, counts.crashed, counts.too_slow, counts.same, counts.different);
}

/// The reader is not believed either: as if it had been taken over.
TEST(Mutations, AnswersOfTheReaderEndInARecordingOrInAnError) {
  const auto seed = first_seed();
  int accepted = 0;
  const int trials = soaks() ? 1'000'000 : 20'000;
  const auto original = random_recording(5);
  const auto file = to_file(original);
  const auto answer = [&] {
    const hdf5::Session session;
    return encode(read_catalog(file));
  }();
  const auto bytes = std::as_bytes(std::span(answer));
  for (int trial = 0; trial < trials; ++trial) {
    SCOPED_TRACE(fmt::format("LOCKSTEP_MUTATION_SEED={}", seed + static_cast<uint64_t>(trial)));
    const auto wrong = Mutator(seed + static_cast<uint64_t>(trial)).mutated({bytes.begin(), bytes.end()});
    try {
      validate(assemble(decode_catalog({reinterpret_cast<const char*>(wrong.data()), wrong.size()}), file));
      ++accepted;
    } catch (const FileError&) {
    } catch (const BadInput&) {
    }
  }
  std::printf("%d mutated answers from seed %lu: %d accepted\n", trials, seed, accepted);
}

}  // namespace
}  // namespace lockstep::replay
