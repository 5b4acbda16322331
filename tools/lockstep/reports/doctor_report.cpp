#include "tools/lockstep/reports/doctor_report.h"

#include <dlfcn.h>
#include <fmt/ranges.h>
#include <sys/utsname.h>
#include <torch/headeronly/version.h>

#include <chrono>
#include <filesystem>
#include <thread>

#include "core/elementary/floating_environment.h"
#include "core/elementary/instruction_set.h"
#include "core/error.h"
#include "core/files/proc_value.h"
#include "core/numerics_version.h"
#include "runtime/kernels/self_test/self_test.h"
#include "runtime/kernels/speed/machine_speed.h"
#include "trainer/data/text_dataset.h"

namespace lockstep::tool {
namespace {

namespace fs = std::filesystem;
constexpr double kGibibyte = 1 << 30;
constexpr double kLittleMemory = 2 * kGibibyte;
constexpr double kLittleDisk = 4 * kGibibyte;
constexpr const char* kDemoText = "data/kjv.txt";

Finding examine_system() {
  utsname name{};
  ::uname(&name);
  return {"system", fmt::format("{} {} {}", name.sysname, name.release, name.machine)};
}

Finding examine_processor() {
  const auto model = proc_value("/proc/cpuinfo", "model name");
  return {"processor", fmt::format("{}, {} hardware threads", model.empty() ? "unknown" : model,
                                   std::thread::hardware_concurrency())};
}

Finding examine_instructions() {
  std::vector<std::string_view> names;
  for (const auto set : available_instruction_sets()) names.push_back(name_of(set));
  return {"instructions", fmt::format("{}; all give the same bits", fmt::join(names, ", "))};
}

Finding examine_memory() {
  const auto kibibytes = [](const char* key) { return std::strtod(proc_value("/proc/meminfo", key).c_str(), nullptr); };
  const auto free = kibibytes("MemAvailable") * 1024;
  return {"memory",
          fmt::format("{:.1f} GiB, {:.1f} GiB available", kibibytes("MemTotal") * 1024 / kGibibyte, free / kGibibyte),
          free < kLittleMemory ? Health::kNote : Health::kFine};
}

Finding examine_libtorch() {
  const auto start = std::chrono::steady_clock::now();
  void* library = ::dlopen("libtorch_cpu.so", RTLD_NOW | RTLD_LOCAL);
  if (!library)
    return {"LibTorch", fmt::format("cannot be loaded: {}; run 'make setup'", ::dlerror()), Health::kBroken};
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
  return {"LibTorch", fmt::format("{}, loads in {:.0f} ms", TORCH_VERSION, took.count())};
}

Finding examine_numerics() {
  try {
    check_floating_environment();
  } catch (const Error& error) {
    return {"numerics", error.what(), Health::kBroken};
  }
  return {"numerics", numerics_version_text() + "; round to nearest, subnormals kept"};
}

Finding examine_kernels() {
  try {
    const auto& report = kernels::require_self_test();
    return {"kernels", fmt::format("{} results equal their oracles in all bits, {:.0f} ms", report.comparisons,
                                   report.milliseconds)};
  } catch (const Error& error) {
    return {"kernels", error.what(), Health::kBroken};
  }
}

/// With one thread and with all of them, which it adds to `finding`.
void measure(Finding& finding, const char* what, const char* unit, double (*speed)(const kernels::Workers&)) {
  const auto all = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  for (const int threads : all > 1 ? std::vector{1, all} : std::vector{1}) {
    const double per_second = speed(kernels::thread_workers(threads));
    finding.numbers.emplace_back(fmt::format("{}_per_second_{}_threads", what, threads), per_second);
    finding.text += threads == 1 ? fmt::format("{:.1f} {} on 1 thread", per_second / 1e9, unit)
                                 : fmt::format(", {:.1f} on {}", per_second / 1e9, threads);
  }
}

/// The first is what runs call the peak (docs/metrics.md).
Finding examine_speed() {
  Finding finding{"speed", "float32 product "};
  measure(finding, "operations", "GFLOP/s", kernels::product_speed);
  finding.text += "; copy ";
  measure(finding, "bytes", "GB/s", kernels::copy_speed);
  return finding;
}

Finding examine_cuda() {
  const bool driver = fs::exists("/proc/driver/nvidia/version");
  return {"CUDA", fmt::format("{}; {}", LOCKSTEP_WITH_CUDA ? "built in" : "not built in (LOCKSTEP_CUDA=OFF)",
                              driver ? "a driver is loaded" : "no NVIDIA driver")};
}

Finding examine_disk() {
  std::error_code error;
  const auto space = fs::space(".", error);
  if (error) return {"disk", error.message(), Health::kNote};
  const auto free = static_cast<double>(space.available);
  return {"disk", fmt::format("{:.1f} GiB free in {}", free / kGibibyte, fs::current_path().string()),
          free < kLittleDisk ? Health::kNote : Health::kFine};
}

Finding examine_data() {
  if (!fs::exists(kDemoText))
    return {"data", fmt::format("{} is missing here; 'make setup' in the source tree makes it", kDemoText),
            Health::kNote};
  try {
    return {"data",
            fmt::format("{}, {:.1f} MB, unigram entropy {:.4f} nats", kDemoText,
                        static_cast<double>(fs::file_size(kDemoText)) / 1e6, trainer::unigram_entropy(kDemoText))};
  } catch (const std::exception& error) {
    return {"data", error.what(), Health::kBroken};
  }
}

}  // namespace

std::vector<Finding> examine_machine() {
  return {examine_system(),   examine_processor(), examine_instructions(), examine_memory(),
          examine_libtorch(), examine_numerics(),  examine_kernels(),      examine_speed(),
          examine_cuda(),     examine_disk(),      examine_data()};
}

}  // namespace lockstep::tool
