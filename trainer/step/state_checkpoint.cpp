#include "trainer/step/state_checkpoint.h"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>

#include <cstring>
#include <set>

#include "core/error.h"
#include "runtime/context/world.h"
#include "runtime/tensor/sharded_tensor.h"
#include "runtime/tensor/tensor_bytes.h"
#include "trainer/launch/rank_texts.h"

namespace lockstep::trainer {
namespace {

/// Of all ranks that hold one cut, the one with coordinate 0 on every axis that does not cut saves it.
bool saves(const Layout& layout, int rank) {
  for (int axis = 0; axis < layout.axis_count(); ++axis)
    if (!layout[axis].is_shard() && layout.mesh().coordinate(rank, axis) != 0) return false;
  return true;
}

Box box_of(const TensorSpec& spec, size_t index) {
  Box box;
  for (int dim = 0; dim < spec.dim_count(); ++dim) {
    const auto range = spec.cut(index, dim);
    box.offset.push_back(range.start);
    box.size.push_back(range.length);
  }
  return box;
}

/// A sharded tensor that is stored as several.
struct Stored {
  at::Tensor tensor;
  const models::Division& division;
  std::string prefix;  ///< of the names

  const TensorSpec& spec() const { return spec_of(tensor); }
  std::string name(size_t part) const { return prefix + division.parts()[part].name; }
};

template <class Visit>
void for_each_tensor_of(const TrainingState& state, const Visit& visit) {
  for (const auto& entry : state)
    for (const auto& [prefix, tensor] : entry.tensors()) visit(Stored{tensor, entry.division, prefix});
}

/// What a shard holds of one part: a box of the part, and the shard's rows in runs.
struct Piece {
  size_t part;
  Box box;
  std::vector<models::PartRows> runs;
};

/// The parts' rows in a shard are consecutive rows of each part, because parts keep their order.
std::vector<Piece> pieces_of(const models::Division& division, const Box& shard) {
  std::vector<Piece> pieces;
  for (size_t part = 0; shard.elements() > 0 && part < division.parts().size(); ++part) {
    if (shard.size.empty()) return {{0, shard, {{0, 0, 1}}}};
    auto runs = division.rows_of(part, shard.offset[0], shard.size[0]);
    if (runs.empty()) continue;
    Box box = shard;
    box.offset[0] = runs.front().part_row;
    box.size[0] = runs.back().part_row + runs.back().count - box.offset[0];
    pieces.push_back({part, std::move(box), std::move(runs)});
  }
  return pieces;
}

at::Tensor rows_of(const at::Tensor& shard, const Box& held, const models::PartRows& run) {
  return held.size.empty() ? shard : shard.narrow(0, run.row - held.offset[0], run.count);
}

/// The piece as a tensor of its own; shares the shard's bytes where it can.
at::Tensor taken(const at::Tensor& shard, const Box& held, const Piece& piece) {
  std::vector<at::Tensor> rows;
  for (const auto& run : piece.runs) rows.push_back(rows_of(shard, held, run));
  return (rows.size() == 1 ? rows[0] : at::cat(rows)).to(c10::kCPU, c10::kFloat).contiguous();
}

void put(at::Tensor shard, const Box& held, const Piece& piece, const std::vector<std::byte>& bytes) {
  const auto plain = at::empty(piece.box.size, at::kFloat);
  LOCKSTEP_CHECK_EQ(bytes.size(), plain.nbytes());
  std::memcpy(plain.mutable_data_ptr(), bytes.data(), bytes.size());
  int64_t next = 0;
  for (const auto& run : piece.runs) {
    rows_of(shard, held, run).copy_(held.size.empty() ? plain : plain.narrow(0, next, run.count));
    next += run.count;
  }
}

/// All processes take the highest number that any sees, before any writes.
int64_t agreed_attempt(const std::string& folder, const Mesh& mesh) {
  int64_t attempt = 0;
  for (const auto& text : texts_of_all_ranks(mesh, std::to_string(next_attempt(folder))))
    attempt = std::max<int64_t>(attempt, std::stoll(text));
  return attempt;
}

void save_together(const std::string& folder, const CheckpointMetadata& metadata, std::span<const ChunkToSave> chunks,
                   const Mesh& mesh) {
  if (static_cast<int>(mesh.local_count()) == mesh.rank_count()) return save_checkpoint(folder, metadata, chunks);
  const auto written = write_chunks(folder, agreed_attempt(folder, mesh), mesh.local_ranks()[0], chunks);
  std::vector<CheckpointIndex> parts;
  for (const auto& text : texts_of_all_ranks(mesh, index_text(written)))
    parts.push_back(parse_index(text, folder, Coverage::kPart));
  if (mesh.local_ranks()[0] == 0) commit_checkpoint(folder, metadata, parts);
  texts_of_all_ranks(mesh, "");
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
  for_each_tensor_of(state, [&](const Stored& stored) {
    for (size_t part = 0; part < stored.division.parts().size(); ++part) wanted.insert(stored.name(part));
  });
  const auto refuse = [&](const char* what, const std::string& name) {
    fail<BadInput>("{}: {} {}: the job's model or optimizer is another than the one that was saved.", folder, what,
                   name);
  };
  for (const auto& name : wanted)
    if (!checkpoint.tensors().contains(name)) refuse("has no", name);
  for (const auto& [name, record] : checkpoint.tensors())
    if (!wanted.contains(name)) refuse("holds", name);
}

}  // namespace

void save_state(const std::string& folder, const CheckpointMetadata& metadata, const TrainingState& state) {
  std::vector<ChunkToSave> chunks;
  std::vector<at::Tensor> kept;  // the bytes are borrowed until the save is over
  for_each_tensor_of(state, [&](const Stored& stored) {
    const auto& mesh = stored.spec().layout.mesh();
    for (size_t i = 0; i < mesh.local_count(); ++i) {
      if (!saves(stored.spec().layout, mesh.local_ranks()[i])) continue;
      const auto held = box_of(stored.spec(), i);
      for (const auto& piece : pieces_of(stored.division, held)) {
        const auto& rows = kept.emplace_back(taken(sharded(stored.tensor).shards()->whole()[i], held, piece));
        chunks.push_back(
            {stored.name(piece.part), "F32", stored.division.sizes_of(piece.part), piece.box, bytes_of(rows)});
      }
    }
  });
  save_together(folder, metadata, chunks, layout_of(state.at(0).value).mesh());
}

CheckpointMetadata load_state(const std::string& folder, TrainingState& state) {
  const at::NoGradGuard no_grad;
  const Checkpoint checkpoint(folder);
  require_same_tensors(folder, checkpoint, state);
  for_each_tensor_of(state, [&](const Stored& stored) {
    require_fit(folder, checkpoint, stored);
    for (size_t i = 0; i < stored.spec().local_sizes.size(); ++i) {
      const auto held = box_of(stored.spec(), i);
      for (const auto& piece : pieces_of(stored.division, held))
        put(sharded(stored.tensor).shards()->whole()[i], held, piece,
            checkpoint.read(stored.name(piece.part), piece.box));
    }
  });
  return checkpoint.metadata();
}

}  // namespace lockstep::trainer
