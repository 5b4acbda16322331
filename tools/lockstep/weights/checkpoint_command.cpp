#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "tools/lockstep/commands.h"
#include "tools/lockstep/console.h"
#include "tools/lockstep/reports/json_output.h"
#include "trainer/checkpoint/checkpoint_file.h"
#include "trainer/checkpoint/run_origin_json.h"

namespace lockstep::tool {
namespace {

nlohmann::ordered_json row_of(const std::string& name, const trainer::TensorRecord& tensor) {
  return {{"name", name}, {"dtype", tensor.dtype}, {"shape", tensor.shape}, {"chunks", tensor.chunks.size()}};
}

/// null where it is not known.
nlohmann::ordered_json numerics_version(const trainer::CheckpointMetadata& metadata) {
  if (!metadata.numerics_version) return nullptr;
  return *metadata.numerics_version;
}

void print_tensors(const trainer::Checkpoint& checkpoint) {
  for (const auto& [name, tensor] : checkpoint.tensors())
    print_out("{:<48} {:<5} [{}] in {} chunks\n", name, tensor.dtype, fmt::join(tensor.shape, ", "),
              tensor.chunks.size());
}

}  // namespace

ExitCode run_checkpoint(const CheckpointOptions& options) {
  const trainer::Checkpoint checkpoint(options.folder);
  const auto& metadata = checkpoint.metadata();
  if (!options.output.quiet) print_tensors(checkpoint);
  const auto damage = checkpoint.damage();
  auto rows = nlohmann::ordered_json::array();
  for (const auto& [name, tensor] : checkpoint.tensors()) rows.push_back(row_of(name, tensor));
  write_json(options.output, {{"step", metadata.step},
                              {"sample", metadata.sample},
                              {"learning_rate", metadata.learning_rate},
                              {"state_digest", metadata.state},
                              {"numerics_version", numerics_version(metadata)},
                              {"run", trainer::json_of<nlohmann::ordered_json>(metadata.origin)},
                              {"tensors", rows},
                              {"damage", damage}});
  if (!damage.empty()) fail<FileError>("{} {} chunks are damaged.", damage.front(), damage.size());
  if (!metadata.origin.identity.empty()) print_out("run {}\n", metadata.origin.identity);
  if (!metadata.state.empty()) print_out("state {}\n", metadata.state);
  for (const auto& [identity, step] : metadata.origin.parents) print_out("after step {} of run {}\n", step, identity);
  print_out("step {}, next sample {}, by {}, {} tensors; every digest matches\n", metadata.step, metadata.sample,
            numerics_version_text(metadata.numerics_version), checkpoint.tensors().size());
  return ExitCode::kFine;
}

}  // namespace lockstep::tool
