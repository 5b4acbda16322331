#include "trainer/recording/machine_facts.h"

#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <torch/headeronly/version.h>
#include <unistd.h>
#if defined(__x86_64__)
#  include <xmmintrin.h>
#endif

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "core/digest/build_id.h"
#include "core/elementary/instruction_set.h"
#include "core/files/proc_value.h"
#include "core/numerics_version.h"
#include "replay/capture/cuda_queue.h"
#include "replay/format/recorded_numerics.h"

namespace lockstep::trainer {
namespace {

/// So that a strange environment does not make a recording too large to be read.
constexpr size_t kMostFacts = 60;

std::string control_register() {
#if defined(__x86_64__)
  return fmt::format("{:#x}", _mm_getcsr() & ~0x3fU);  // without what happened so far
#else
  return "none";
#endif
}

bool matters(std::string_view variable) {
  constexpr std::string_view kPrefixes[] = {"OMP_",  "GOMP_",   "KMP_",   "MKL_",     "ATEN_",
                                            "DNNL_", "ONEDNN_", "TORCH_", "LOCKSTEP_"};
  if (variable.starts_with("LOCKSTEP_JOB_TOKEN")) return false;
  if (variable == "GOMP_SPINCOUNT" || variable == "OMP_WAIT_POLICY") return false;  // how threads wait for each other
  return std::any_of(std::begin(kPrefixes), std::end(kPrefixes),
                     [&](std::string_view prefix) { return variable.starts_with(prefix); });
}

/// As a recording can hold it: one line, and not a long one.
std::string short_line(std::string_view value) {
  constexpr size_t kLongest = 512;
  std::string line(value.substr(0, kLongest));
  std::replace_if(
      line.begin(), line.end(), [](char c) { return c == '\n' || c == '\r'; }, ' ');
  return line.size() < value.size() ? line + "..." : line;
}

}  // namespace

MachineFacts machine_facts(const std::string& device) {
  MachineFacts facts{{"build_id", build_id()},
                     {std::string(replay::kNumericsFact), std::to_string(kNumericsVersion)},
                     {"libtorch", TORCH_VERSION},
                     {"processor", processor_name()},
                     {"device", device == "cuda" ? "cuda, " + replay::cuda_device_name() : device},
                     {"instruction_set", std::string(name_of(best_instruction_set()))},
                     {"libtorch_instruction_set", at::get_cpu_capability()},
                     {"threads", std::to_string(at::get_num_threads())},
                     {"mxcsr", control_register()}};
  for (char** entry = environ; *entry && facts.size() < kMostFacts; ++entry) {
    const std::string_view text = *entry;
    const auto equals = text.find('=');
    if (equals != text.npos && matters(text))
      facts.emplace_back("environment." + short_line(text.substr(0, equals)), short_line(text.substr(equals + 1)));
  }
  return facts;
}

std::vector<std::string> machine_differences(const MachineFacts& recorded, const std::string& device) {
  const auto here = machine_facts(device);
  std::vector<std::string> lines;
  for (const auto& [key, there] : recorded)
    for (const auto& [name, value] : here)
      if (key == name && there != value) lines.push_back(fmt::format("{}: {} there, {} here", key, there, value));
  return lines;
}

std::string numerics_difference(const replay::StepRecording& recording, const Job& job, bool bits_differ) {
  const auto version = replay::numerics_version_of(recording);
  const bool matters = version ? *version != kNumericsVersion : bits_differ;
  if (!matters || !job.numerics.is_canonical()) return {};
  return fmt::format("recorded by {}, this is {}: canonical bits may differ for that alone",
                     numerics_version_text(version), numerics_version_text());
}

}  // namespace lockstep::trainer
