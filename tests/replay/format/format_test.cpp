// What FORMAT.md promises about a step's file besides its contents: its size, and that other tools read it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <memory>

#include "replay/store/recording_file.h"
#include "tests/support/recorded_steps.h"
#include "tests/support/temporary_folder.h"

namespace lockstep::replay {
namespace {

using lockstep::testing::random_recording;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

/// The formula of FORMAT.md.
double predicted_size(const StepRecording& r) {
  std::size_t longest = 0, texts = r.reason.size() + r.job.size();
  for (const auto& name : r.names) longest = std::max(longest, name.size());
  for (const auto& [key, value] : r.machine) texts += key.size() + value.size() + 4;
  std::size_t bytes = 33 * r.ops.size() + 37 * r.results.size() + 71 * r.collectives.size() + 40 * r.pieces.size();
  bytes += 56 * r.scalars.size() + (longest + 1) * r.names.size() + texts + r.payload.size();
  bytes += 4 * (r.tokens.size() + r.labels.size() + r.positions.size());
  for (const auto& tensor : r.state) bytes += 400 + tensor.bytes.size();
  return static_cast<double>(bytes) + 8200 + (r.has_state ? 700 : 0);
}

TEST(Format, SizesArePredictedWithinFivePercent) {
  double worst = 0;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    const auto recording = random_recording(seed, seed % 3 == 0 ? 10 : seed % 3 == 1 ? 100 : 1000);
    const auto size = static_cast<double>(to_file(recording).size());
    const auto predicted = predicted_size(recording);
    EXPECT_NEAR(size, predicted, 0.05 * predicted) << seed << ": " << recording.state.size() << " tensors";
    worst = std::max(worst, std::abs(size - predicted) / predicted);
  }
  std::printf("sizes predicted within %.1f %%\n", 100 * worst);
}

std::string output_of(const std::string& command) {
  const std::unique_ptr<FILE, decltype(&::pclose)> pipe(::popen(command.c_str(), "r"), &::pclose);
  std::string output;
  std::array<char, 4096> part{};
  while (const auto count = std::fread(part.data(), 1, part.size(), pipe.get())) output.append(part.data(), count);
  return output;
}

TEST(Format, H5dumpReadsIt) {
  StepRecording recording;
  recording.names = {"", "layers.3.attention", "linear", "float [2]"};
  recording.ops = {{{1, 0, 1, 2, 7}, 5, 9}};
  recording.results = {{0, 0, ResultKind::kDigest, 3, 8, {1, 2}}};
  recording.scalars = {{"loss", 0x3ff0000000000000}};
  recording.rows = 1;
  recording.first_sample = 12;
  recording.next_sample = 13;
  recording.collectives = {{{1, 0, 1, 2, 7}, 0, 1, 2, 0, 6, 0xbeef, 0xfeed, 0, 0, 6, 8}};
  recording.seq_len = 2;
  recording.tokens = {5, 6};
  recording.labels = {6, -100};
  recording.has_state = true;
  recording.state = {
      {"weight", 6, {2}, Bytes(8)}, {"weight.half", 15, {}, Bytes(2)}, {"weight.short", 2, {1}, Bytes(2)}};
  const TemporaryFolder folder;
  const auto bytes = to_file(recording);
  const auto path = folder.write("x.h5", {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  if (output_of("h5dump --version 2>&1").find("h5dump") == std::string::npos) GTEST_SKIP() << "h5dump is missing";
  const auto dump = output_of("h5dump " + path + " 2>&1");
  EXPECT_THAT(dump, AllOf(HasSubstr("\"layers.3.attention\""), HasSubstr("6, -100"), HasSubstr("\"loss\""),
                          HasSubstr("\"lockstep-recording\""), HasSubstr("\"bfloat16\""), HasSubstr("\"linear\""),
                          HasSubstr("H5T_STD_U16LE"), HasSubstr("H5T_STD_I16LE"), Not(HasSubstr("\\000"))));
  EXPECT_EQ(output_of("h5ls -r " + path + " 2>&1"),
            "/                        Group\n"
            "/batch                   Group\n"
            "/batch/labels            Dataset {1, 2}\n"
            "/batch/positions         Dataset {0, 2}\n"
            "/batch/tokens            Dataset {1, 2}\n"
            "/collectives             Dataset {1}\n"
            "/job                     Dataset {SCALAR}\n"
            "/machine                 Dataset {SCALAR}\n"
            "/names                   Dataset {4}\n"
            "/ops                     Dataset {1}\n"
            "/payload                 Dataset {0}\n"
            "/pieces                  Dataset {0}\n"
            "/reason                  Dataset {SCALAR}\n"
            "/results                 Dataset {1}\n"
            "/scalars                 Dataset {1}\n"
            "/state                   Group\n"
            "/state/weight            Dataset {2}\n"
            "/state/weight.half       Dataset {SCALAR}\n"
            "/state/weight.short      Dataset {1}\n");
}

}  // namespace
}  // namespace lockstep::replay
