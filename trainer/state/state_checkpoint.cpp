#include "trainer/state/state_checkpoint.h"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <set>

#include "core/error.h"
#include "runtime/plain/plain_tensors.h"
#include "runtime/tensor/sharded_tensor.h"
#include "trainer/launch/rank_texts.h"
#include "trainer/launch/shared_folder.h"
#include "trainer/launch/together.h"
#include "trainer/state/held_shards.h"
#include "trainer/state/replicas.h"
#include "trainer/state/state_digest.h"
#include "trainer/state/stored_tensors.h"

namespace lockstep::trainer {
namespace {

at::Tensor plain_of(const Piece& piece, const std::vector<std::byte>& bytes) {
  auto plain = at::empty(piece.box.size, at::kFloat);
  LOCKSTEP_CHECK_EQ(bytes.size(), plain.nbytes());
  std::memcpy(plain.mutable_data_ptr(), bytes.data(), bytes.size());
  return plain;
}

void save_together(const std::string& folder, const CheckpointMetadata& metadata, std::span<const ChunkToSave> chunks,
                   const Mesh& mesh) {
  if (static_cast<int>(mesh.local_count()) == mesh.rank_count()) return save_checkpoint(folder, metadata, chunks);
  require_shared_folder(std::filesystem::path(folder).parent_path().string(), mesh);
  const auto attempt = agreed_attempt(folder, mesh);
  const int rank = mesh.local_ranks()[0];
  CheckpointIndex written;
  together(mesh, [&] { written = write_chunks(folder, attempt, rank, chunks); });
  const auto texts = texts_of_all_ranks(mesh, index_text(written));
  together(mesh, [&] {
    if (rank != 0) return;
    std::vector<CheckpointIndex> parts;
    for (const auto& text : texts) parts.push_back(parse_index(text, folder, Coverage::kPart));
    commit_checkpoint(folder, metadata, parts);
  });
}

void require_fit(const std::string& folder, const Checkpoint& checkpoint, const Stored& stored) {
  for (size_t part = 0; part < stored.division.parts().size(); ++part) {
    const auto& record = checkpoint.tensor(stored.name(part));
    const auto wanted = stored.division.sizes_of(part);
    if (record.shape != wanted || record.dtype != "F32")
      fail<BadInput>("{}: {} is {} {}, the job's model has F32 {}", folder, stored.name(part), record.dtype,
                     c10::str(c10::IntArrayRef(record.shape)), c10::str(c10::IntArrayRef(wanted)));
  }
}

/// What the job does not make would be lost in silence.
void require_same_tensors(const std::string& folder, const Checkpoint& checkpoint, const TrainingState& state) {
  std::set<std::string, std::less<>> wanted;
  for (const auto& stored : stored_tensors(state))
    for (size_t part = 0; part < stored.division.parts().size(); ++part) wanted.insert(stored.name(part));
  const auto refuse = [&](const char* what, const std::string& name) {
    fail<BadInput>("{}: {} {}: the job's model or optimizer is another than the one that was saved.", folder, what,
                   name);
  };
  for (const auto& name : wanted)
    if (!checkpoint.tensors().contains(name)) refuse("has no", name);
  for (const auto& [name, record] : checkpoint.tensors())
    if (!wanted.contains(name)) refuse("holds", name);
}

/// What lives in this process.
CheckpointMetadata load_here(const std::string& folder, TrainingState& state) {
  const at::NoGradGuard no_grad;
  const PlainTensors guard;
  const Checkpoint checkpoint(folder);
  require_same_tensors(folder, checkpoint, state);
  for (const auto& stored : stored_tensors(state)) {
    require_fit(folder, checkpoint, stored);
    for (size_t i = 0; i < stored.spec().local_sizes.size(); ++i) {
      const auto held = held_box(stored.spec(), i);
      for (const auto& piece : pieces_of(stored.division, held))
        put(sharded(stored.tensor).shards()->whole()[i], held, piece,
            plain_of(piece, checkpoint.read(stored.name(piece.part), piece.box)));
    }
  }
  return checkpoint.metadata();
}

}  // namespace

int64_t agreed_attempt(const std::string& folder, const Mesh& mesh) {
  const auto numbers = numbers_of_all_ranks(mesh, next_attempt(folder));
  return *std::max_element(numbers.begin(), numbers.end());
}

void save_state(const std::string& folder, CheckpointMetadata metadata, const TrainingState& state) {
  metadata.state = state_digest(state).text();
  const auto held = held_shards(state);
  const auto all = chunks_of(held);
  save_together(folder, metadata, all.chunks, layout_of(state.at(0).value).mesh().whole());
}

CheckpointMetadata load_state(const std::string& folder, TrainingState& state) {
  // What is under way has to arrive in this thread, on every rank.
  for (const auto& stored : stored_tensors(state)) sharded(stored.tensor).shards()->whole();
  CheckpointMetadata metadata;
  together(layout_of(state.at(0).value).mesh().whole(), [&] { metadata = load_here(folder, state); });
  const bool is_older = metadata.origin.identity.empty() && metadata.state.empty();
  if (const auto loaded = state_digest(state).text(); !is_older && loaded != metadata.state)
    fail<FileError>(
        "{}: the state that was loaded has digest {}, the one that was saved {}, though every chunk is as it was "
        "written: "
        "it was saved or loaded wrongly. Report this; lockstep doctor says what this machine is.",
        folder, loaded, metadata.state);
  if (const auto text = replica_difference(state, {}); !text.empty())
    fail<FileError>("{}: not all ranks loaded the same into what they hold alike: {}.", folder, text);
  return metadata;
}

}  // namespace lockstep::trainer
