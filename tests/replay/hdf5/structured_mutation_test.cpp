// Step files changed with HDF5 itself: datasets gone, empty, swapped, twice or of other rows, attributes gone or
// altered. The reader names the file and what is wrong, or gives a recording that validate() accepts and that a
// comparison with the original does not take for it. A seed decides; LOCKSTEP_MUTATION_SEED repeats one, LOCKSTEP_SOAK
// runs 10,000.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <random>

#include "core/sanitized.h"
#include "replay/format/datasets.h"
#include "replay/format/validate.h"
#include "replay/store/recording_file.h"
#include "replay/view/trace_diff.h"
#include "tests/support/hdf5_edit.h"
#include "tests/support/recorded_steps.h"

namespace lockstep::replay {
namespace {

using lockstep::testing::edited;
using lockstep::testing::Handle;
using lockstep::testing::random_recording;
using Clock = std::chrono::steady_clock;
using ::testing::StartsWith;

/// Of a dataset: what it holds, and how that is stored.
struct Stored {
  Handle type;
  std::vector<hsize_t> sizes;
  Bytes bytes;

  std::size_t row() const { return H5Tget_size(type.get()); }
  std::size_t rows() const { return bytes.size() / row(); }
};

Stored read_stored(hid_t file, const std::string& path) {
  const Handle dataset(H5Dopen2(file, path.c_str(), H5P_DEFAULT)), space(H5Dget_space(dataset.get()));
  Stored stored{Handle(H5Dget_type(dataset.get())), {}, {}};
  stored.sizes.resize(static_cast<std::size_t>(H5Sget_simple_extent_ndims(space.get())));
  H5Sget_simple_extent_dims(space.get(), stored.sizes.data(), nullptr);
  stored.bytes.resize(static_cast<std::size_t>(H5Sget_simple_extent_npoints(space.get())) * stored.row());
  if (!stored.bytes.empty())
    H5Dread(dataset.get(), stored.type.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, stored.bytes.data());
  return stored;
}

/// Instead of the one there; its attributes are gone.
void write_stored(hid_t file, const std::string& path, const Stored& stored) {
  lockstep::testing::replace(file, path.c_str(), stored.type.get(), stored.sizes);
  const Handle dataset(H5Dopen2(file, path.c_str(), H5P_DEFAULT));
  if (!stored.bytes.empty())
    H5Dwrite(dataset.get(), stored.type.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, stored.bytes.data());
}

/// Draws a change of a file and makes it.
class FileMutator {
 public:
  FileMutator(const StepRecording& recording, uint64_t seed) : engine_(seed) {
    for (const auto& dataset : kDatasets) paths_.emplace_back(dataset.path);
    for (const auto& tensor : recording.state) paths_.push_back("/state/" + tensor.name);
  }

  void mutate(hid_t file) {
    switch (up_to(5)) {
      case 0:
        return change_attribute(file);
      case 1:
        return change_links(file);
      default:
        return change_rows(file, any_path());
    }
  }

 private:
  std::size_t up_to(std::size_t most) { return std::uniform_int_distribution<std::size_t>(0, most)(engine_); }
  const std::string& any_path() { return paths_[up_to(paths_.size() - 1)]; }

  void change_attribute(hid_t file) {
    static constexpr const char* kNumbers[] = {"version",   "rank",         "world",       "step",        "complete",
                                               "has_state", "first_sample", "next_sample", "state_digest"};
    const auto* const name = kNumbers[up_to(std::size(kNumbers) - 1)];
    static constexpr int64_t kValues[] = {-1, 0, 1, 2, 3, int64_t{1} << 31, int64_t{1} << 62};
    if (up_to(2) == 0)
      H5Adelete(file, name);
    else
      lockstep::testing::set_number(file, name, kValues[up_to(std::size(kValues) - 1)]);
  }

  /// One gone, or two swapped, or one there again under another's name.
  void change_links(hid_t file) {
    const auto &one = any_path(), &other = any_path();
    const auto kind = up_to(2);
    if (kind == 0) return static_cast<void>(H5Ldelete(file, one.c_str(), H5P_DEFAULT));
    if (one == other) return;
    H5Lmove(file, one.c_str(), file, "/moved", H5P_DEFAULT, H5P_DEFAULT);
    if (kind == 1) H5Lmove(file, other.c_str(), file, one.c_str(), H5P_DEFAULT, H5P_DEFAULT);
    if (kind == 2) H5Ocopy(file, other.c_str(), file, one.c_str(), H5P_DEFAULT, H5P_DEFAULT);
    if (kind == 1) H5Lmove(file, "/moved", file, other.c_str(), H5P_DEFAULT, H5P_DEFAULT);
    if (kind == 2) H5Ldelete(file, "/moved", H5P_DEFAULT);
  }

  void change_rows(hid_t file, const std::string& path) {
    auto stored = read_stored(file, path);
    if (stored.rows() == 0) return;
    const auto size = stored.row(), row = up_to(stored.rows() - 1) * size, other = up_to(stored.rows() - 1) * size;
    auto& bytes = stored.bytes;
    const auto at = [&](std::size_t place) { return bytes.begin() + static_cast<std::ptrdiff_t>(place); };
    switch (stored.sizes.size() == 1 ? up_to(5) : 4 + up_to(1)) {
      case 0:
        bytes.clear();
        break;
      case 1:
        bytes.erase(at(row), at(row + size));
        break;
      case 2:
        bytes.insert(bytes.end(), at(row), at(row + size));
        break;
      case 3:
        std::swap_ranges(at(row), at(row + size), at(other));
        break;
      case 4:
        bytes[row + up_to(size - 1)] ^= static_cast<std::byte>(1U << up_to(7));
        break;
      default:
        std::fill(at(row), at(row + size), std::byte{0});
        break;
    }
    if (stored.sizes.size() == 1) stored.sizes[0] = stored.rows();
    write_stored(file, path, stored);
  }

  std::mt19937_64 engine_;
  std::vector<std::string> paths_;
};

/// A comparison says that all results, numbers and batches are equal only where they are.
void expect_noticed(const StepRecording& original, const StepRecording& read) {
  const auto found = diff(original, read);
  if (!found.agrees() || !found.is_comparable() || found.all.incomparable > 0) return;
  EXPECT_TRUE(original.scalars == read.scalars || original.scalars.size() == read.scalars.size());
  EXPECT_EQ(original.results.size(), read.results.size());
  EXPECT_TRUE(original.tokens == read.tokens && original.labels == read.labels);
  for (std::size_t i = 0; i < original.results.size(); ++i)
    EXPECT_EQ(original.results[i].digest.text(), read.results[i].digest.text());
}

struct Counts {
  int refused = 0, same = 0, different = 0;
};

void count_trial(const StepRecording& original, const Bytes& file, Counts& counts) {
  try {
    const auto read = from_file(file, "x.h5");
    validate(read);
    ++(read == original ? counts.same : counts.different);
    expect_noticed(original, read);
  } catch (const FileError& error) {
    ++counts.refused;
    const std::string message = error.what();
    EXPECT_THAT(message, StartsWith("x.h5: "));
    EXPECT_TRUE(message.find("crashed") == message.npos && message.find("longer than") == message.npos) << message;
  }
}

TEST(StructuredMutations, EndInARecordingOrInAnError) {
  const char* const asked = std::getenv("LOCKSTEP_MUTATION_SEED");
  const bool soaks = std::getenv("LOCKSTEP_SOAK") != nullptr;
  const uint64_t first = asked ? std::strtoull(asked, nullptr, 10) : 1, trials = asked ? 1 : soaks ? 10'000 : 500;
  Counts counts;
  for (uint64_t seed = first; seed < first + trials; ++seed) {
    SCOPED_TRACE(fmt::format("LOCKSTEP_MUTATION_SEED={}", seed));
    const auto original = random_recording(seed % 16);
    FileMutator mutator(original, seed);
    const auto file = edited(to_file(original), [&](hid_t id) { mutator.mutate(id); });
    const auto begin = Clock::now();
    count_trial(original, file, counts);
    ASSERT_LT(Clock::now() - begin, std::chrono::seconds(lockstep::kSanitized ? 20 : 2));
    if (::testing::Test::HasFailure()) return;
  }
  if (!asked) {
    EXPECT_GT(std::min({counts.refused, counts.same, counts.different}), 0);
  }
  std::printf("%lu changed files: %d refused, %d read the same, %d read with other content\n", trials, counts.refused,
              counts.same, counts.different);
}

}  // namespace
}  // namespace lockstep::replay
