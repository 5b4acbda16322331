#include "trainer/mutation/trials/wrong_checkpoint.h"

#include <ATen/Functions.h>

#include <cstdlib>

#include "trainer/checkpoint/checkpoint_file.h"

namespace lockstep::trainer {
namespace {

void count_wrongly(const std::string& what, CheckpointMetadata& metadata) {
  if (what == "sample") ++metadata.sample;
  if (what == "learning_rate")
    metadata.learning_rate = fmt::format("{:a}", 2 * std::strtod(metadata.learning_rate.c_str(), nullptr));
  if (what == "state") metadata.state[0] = metadata.state[0] == '0' ? '1' : '0';
}

}  // namespace

bool save_wrongly(const std::string& from, const std::string& to, const Mutant& mutant) {
  const Checkpoint right(from);
  auto metadata = right.metadata();
  const bool is_of_metadata = mutant.site.kind == Site::Kind::kMetadata;
  if (is_of_metadata) count_wrongly(mutant.site.tensor, metadata);
  bool changes = is_of_metadata;
  std::map<std::string, std::vector<std::byte>> bytes;
  std::vector<ChunkToSave> chunks;
  Memory memory;
  for (const auto& [name, record] : right.tensors()) {
    auto& mine = bytes[name] = right.read(name);
    if (name == mutant.site.tensor)
      changes |=
          spoil(mutant.change, mutant.amount, at::from_blob(mine.data(), record.shape, at::kFloat), {}, "", memory);
    chunks.push_back(
        {name, record.dtype, record.shape, {std::vector<int64_t>(record.shape.size(), 0), record.shape}, mine});
  }
  save_checkpoint(to, metadata, chunks);
  return changes;
}

}  // namespace lockstep::trainer
