#include "trainer/stages/named_parts.h"

#include <algorithm>

#include "core/error.h"
#include "trainer/pipeline/block_split.h"

namespace lockstep::trainer {
namespace {

constexpr const char* kKey = "parallelism.module_fqns_per_model_part";

std::vector<std::string> names_of(const models::Module& block, const ParallelismSection& parallelism) {
  const auto& parts = parallelism.module_fqns_per_model_part;
  const auto names_path = [&](const auto& part) { return std::ranges::find(part, block.path()) != part.end(); };
  if (std::ranges::any_of(parts, names_path)) return {block.path()};
  std::vector<std::string> names;
  for (const auto* parameter : block.parameters())
    for (const auto& part : parameter->division().parts()) {
      const bool is_below = part.name.starts_with(block.path() + ".");
      const auto name = is_below ? block.path() : part.name.substr(0, part.name.rfind('.'));
      if (std::ranges::find(names, name) == names.end()) names.push_back(name);
    }
  return names;
}

std::vector<int64_t> split(const std::vector<std::string>& names, const ParallelismSection& parallelism) {
  try {
    return pipeline::split_as_named(names, parallelism.module_fqns_per_model_part);
  } catch (const BadInput& error) {
    fail<BadInput>("{}: {}", kKey, error.what());
  }
}

}  // namespace

std::vector<int64_t> first_blocks_as_named(const ParallelismSection& parallelism, models::Model& model) {
  if (parallelism.pipeline_parallel_layers_per_stage)
    fail<BadInput>("{} names the blocks of each stage; leave pipeline_parallel_layers_per_stage out.", kKey);
  std::vector<std::string> names;
  std::vector<int64_t> begins;  // of each block among the names
  for (const auto* block : model.blocks()) {
    begins.push_back(static_cast<int64_t>(names.size()));
    for (auto& name : names_of(*block, parallelism)) names.push_back(std::move(name));
  }
  std::vector<int64_t> first;
  for (const auto begin : split(names, parallelism)) {
    const auto block = std::ranges::find(begins, begin);
    if (block == begins.end())
      fail<BadInput>("{}: {} and {} are of one block of the model; name them in one stage.", kKey,
                     names[static_cast<size_t>(begin) - 1], names[static_cast<size_t>(begin)]);
    first.push_back(block - begins.begin());
  }
  return first;
}

int64_t named_stages_per_rank(const ParallelismSection& parallelism, int64_t ranks) {
  const auto parts = static_cast<int64_t>(parallelism.module_fqns_per_model_part.size());
  if (parts % ranks != 0)
    fail<BadInput>("{} has {} stages, no multiple of the {} ranks of mesh axis pp.", kKey, parts, ranks);
  return parts / ranks;
}

}  // namespace lockstep::trainer
