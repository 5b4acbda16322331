#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <vector>

#include "core/interruption.h"
#include "tools/lockstep/commands.h"
#include "tools/lockstep/commands/rules_columns.h"
#include "tools/lockstep/waiting_threads.h"

/// The commands that need LibTorch, in `lockstep`: the same command line, run by `lockstep-engine` beside it.
namespace lockstep::tool {

const bool kIsFront = true;

namespace {

/// This process's arguments as the system keeps them, each ended by a zero byte.
std::string own_command_line() {
  std::string text;
  char block[4096];
  std::FILE* file = std::fopen("/proc/self/cmdline", "rb");
  LOCKSTEP_CHECK(file, "/proc/self/cmdline: {}", std::strerror(errno));
  while (const auto count = std::fread(block, 1, sizeof block, file)) text.append(block, count);
  std::fclose(file);
  return text;
}

/// Becomes the engine: process id, files and signals stay. Returns only by an exception.
[[noreturn]] void hand_over() {
  const auto engine = (std::filesystem::read_symlink("/proc/self/exe").parent_path() / "lockstep-engine").string();
  auto line = own_command_line();
  std::vector<char*> arguments;
  for (size_t at = 0; at < line.size(); at += std::strlen(&line[at]) + 1) arguments.push_back(&line[at]);
  arguments.push_back(nullptr);
  std::fflush(nullptr);
  const InterruptionsBlocked until_it_runs;
  if (!std::getenv("OMP_WAIT_POLICY") && !std::getenv("GOMP_SPINCOUNT"))
    ::setenv("GOMP_SPINCOUNT", spin_count(machine_load()).c_str(), /*overwrite=*/0);
  ::execv(engine.c_str(), arguments.data());
  fail<InternalError>("{} cannot be started: {}. It belongs beside lockstep.", engine, std::strerror(errno));
}

/// LibTorch and MKL read their variables when they are loaded, by the engine.
void limit_instructions(const std::string& set) {
  struct Limit {
    const char *set, *libtorch, *mkl, *onednn;
  };
  constexpr Limit kLimits[] = {{"baseline", "default", "SSE4_2", "SSE41"},
                               {"avx2", "avx2", "AVX2", "AVX2"},
                               {"avx512", "avx512", "AVX512", "AVX512_CORE"}};
  for (const auto& limit : kLimits) {
    if (set != limit.set) continue;
    ::setenv("LOCKSTEP_INSTRUCTION_SET", limit.set, /*overwrite=*/1);
    ::setenv("ATEN_CPU_CAPABILITY", limit.libtorch, 1);
    ::setenv("MKL_ENABLE_INSTRUCTIONS", limit.mkl, 1);
    ::setenv("ONEDNN_MAX_CPU_ISA", limit.onednn, 1);
  }
}

}  // namespace

void set_up_memory() {}

std::vector<std::string> use_plugins(const std::vector<std::string>& files) {
  if (files.empty()) return {};
  hand_over();
}

ExitCode run_train(const TrainOptions&, const trainer::Job&) { hand_over(); }
ExitCode run_verify(const VerifyOptions&, const trainer::Job&, std::span<const trainer::MeshDegrees>) { hand_over(); }
ExitCode run_replay(const ReplayOptions&) { hand_over(); }
ExitCode run_rules(const RulesOptions& options) {
  if (!options.missing) print_rules_line(kRulesHeading);
  hand_over();
}
ExitCode run_mutate(const MutateOptions&) { hand_over(); }
ExitCode run_plan(const PlanOptions&) { hand_over(); }
ExitCode run_fuzz(const FuzzOptions&) { hand_over(); }
ExitCode run_shrink(const ShrinkOptions&) { hand_over(); }
ExitCode run_weights(const WeightsOptions&) { hand_over(); }
ExitCode run_generate(const GenerateCommand&) { hand_over(); }
ExitCode run_bench(const BenchOptions& options) {
  limit_instructions(options.instructions);
  hand_over();
}

}  // namespace lockstep::tool
