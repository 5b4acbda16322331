#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "trainer/checkpoint/checkpoint_index.h"
#include "trainer/checkpoint/safetensors.h"
#include "trainer/checkpoint/saved_origins.h"

/// Checkpoint folders: safetensors files of chunks, and an index that makes them valid. docs/checkpoint.md.
///
/// A folder without an index is no checkpoint. The index is renamed into place after everything it names is on the
/// disk, so that a crash at any moment leaves the previous state of the folder readable.
namespace lockstep::trainer {

/// A part of a tensor to save; a tensor's parts, from all processes, must cover it exactly once. Bytes are borrowed.
struct ChunkToSave {
  std::string name;
  std::string dtype;           ///< safetensors' spelling
  std::vector<int64_t> shape;  ///< of the whole tensor
  Box box;
  std::span<const std::byte> bytes;
};

/// Which number the next save into `folder` gets; chosen once for all processes, so that no file is overwritten.
int64_t next_attempt(const std::string& folder);

/// First half of a save: writes this process's chunks to files of its own, synced. Creates the folder.
CheckpointIndex write_chunks(const std::string& folder, int64_t attempt, int64_t process,
                             std::span<const ChunkToSave> chunks);

/// Second half: joins the processes' records, renames the index into place and removes files of older attempts.
void commit_checkpoint(const std::string& folder, const CheckpointMetadata& metadata,
                       std::span<const CheckpointIndex> written);

/// Both halves for one process. FileError when anything cannot be written; an older checkpoint in the folder survives.
void save_checkpoint(const std::string& folder, const CheckpointMetadata& metadata,
                     std::span<const ChunkToSave> chunks);

/// A checkpoint opened for reading. A folder whose name is another step's is refused (FileError). Damage anywhere is a
/// FileError that names the file and how much can be read.
class Checkpoint {
 public:
  /// Reads the index and the structure of every chunk file, not the tensors.
  explicit Checkpoint(const std::string& folder);

  const CheckpointMetadata& metadata() const { return index_.metadata; }
  const std::map<std::string, TensorRecord>& tensors() const { return index_.tensors; }
  /// FileError when there is no such tensor.
  const TensorRecord& tensor(const std::string& name) const;

  /// The elements of `box` in row-major order, however the tensor was cut when saved; every chunk that is touched is
  /// read whole and checked against its digest.
  std::vector<std::byte> read(const std::string& name, const Box& box) const;
  std::vector<std::byte> read(const std::string& name) const;

  /// Reads everything: one line per damaged chunk, nothing when all is well.
  std::vector<std::string> damage() const;

 private:
  std::vector<std::byte> read_chunk(const std::string& name, const ChunkRecord& chunk) const;
  [[noreturn]] void fail_broken(const std::string& first_error, const std::set<std::string>& broken) const;
  void check_chunk(const std::string& name, const TensorRecord& tensor, const ChunkRecord& chunk) const;

  std::string folder_;
  CheckpointIndex index_;
  std::map<std::string, SafetensorsFile> files_;
};

/// What a folder's index says of the run, without a look at the chunks. Errors as Checkpoint's.
CheckpointMetadata saved_metadata(const std::string& folder);

/// Which run saved the checkpoint in a folder; none where the index cannot be read, or is of another step than the
/// folder's name says: that one belongs to nobody.
std::optional<RunOrigin> saved_origin(const std::string& folder);

/// The folder of step `step` inside `root`.
std::string checkpoint_path(const std::string& root, int64_t step);

/// Steps that have a complete checkpoint in `root`, ascending; empty when `root` does not exist.
std::vector<int64_t> complete_steps(const std::string& root);

/// The step to resume from: `wanted`, or the latest complete one for -1, none when there is none.
/// BadInput when `wanted` >= 0 has no complete checkpoint, naming those that exist.
std::optional<int64_t> step_to_load(const std::string& root, int64_t wanted);

/// Those of the complete ones that this run saved, or, up to where it followed them, the runs that it followed.
std::vector<int64_t> own_steps(const std::string& root, const RunOrigin& origin, SavedOrigins& known);

/// Removes complete checkpoints but the `keep` latest; 0 keeps all. Only those of the run and the runs that it followed
/// count, and go. Each loses its index first, so that a crash leaves no checkpoint that looks whole, and a folder stays
/// if there are files in it that no save wrote. Who prunes after every save keeps `known`. FileError names what cannot
/// go.
void remove_old_checkpoints(const std::string& root, int64_t keep, const RunOrigin& origin, SavedOrigins& known);
void remove_old_checkpoints(const std::string& root, int64_t keep, const RunOrigin& origin);

/// Removes what saves and prunings that crashed left in `root`: folders of steps without an index lose the files that
/// saves write, and go if nothing else is in them. The folder of step `saving` stays, and what cannot be removed, which
/// harms nothing. REQUIRES: nobody else saves into `root` (FolderLock).
void remove_abandoned(const std::string& root, int64_t saving);

}  // namespace lockstep::trainer
