#include <ATen/Parallel.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/elementary/floating_environment.h"
#include "core/files/atomic_file.h"
#include "fuzz/shrink/shrink.h"
#include "tools/lockstep/commands.h"
#include "tools/lockstep/console.h"
#include "tools/lockstep/reports/json_output.h"

namespace lockstep::tool {
namespace {

std::string path_of(const ShrinkOptions& options) {
  if (!options.smallest.empty()) return options.smallest;
  return std::filesystem::path(options.case_file).replace_extension(".smallest.h5").string();
}

fuzz::Shrunk shrunk(const ShrinkOptions& options) {
  const auto one = replay::read_case(options.case_file);
  try {
    return fuzz::shrink(one, options.seconds);
  } catch (const BadInput& error) {
    fail<BadInput>("{}: {}.", options.case_file, error.what());
  } catch (const FileError& error) {
    fail<FileError>("{}: {}.", options.case_file, error.what());
  }
}

}  // namespace

ExitCode run_shrink(const ShrinkOptions& options) {
  check_floating_environment();
  at::set_num_threads(1);  // the child that runs the op has no others
  const auto result = shrunk(options);
  const auto path = path_of(options);
  const auto bytes = replay::to_file(result.smallest);
  write_file_atomically(path, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  const auto again = fmt::format("lockstep replay --case {}", path);
  print_out("before     {}\nsmallest   {}  ({} cases tried)\n{}\n  again      {}\n", result.before, result.after,
            result.tried, result.finding, again);
  write_json(options.output, {{"case", path},
                              {"before", result.before},
                              {"after", result.after},
                              {"tried", result.tried},
                              {"finding", result.finding},
                              {"again", again}});
  return ExitCode::kFine;
}

}  // namespace lockstep::tool
