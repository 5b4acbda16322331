#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/box.h"
#include "core/numerics_version.h"

/// The index of a checkpoint: which tensors it holds and where their chunks lie. docs/checkpoint.md.
namespace lockstep::trainer {

/// Which run saved a checkpoint (trainer/identity/run_identity.h).
struct RunOrigin {
  /// A run that this one followed, changed: its last step that counts.
  struct Parent {
    std::string identity;
    int64_t step = 0;
    friend bool operator==(const Parent&, const Parent&) = default;
  };

  std::string identity;         ///< 32 hexadecimal digits
  std::string data;             ///< the data's digest
  std::vector<Parent> parents;  ///< the oldest first

  friend bool operator==(const RunOrigin&, const RunOrigin&) = default;
};

/// What a run needs besides its tensors to go on.
struct CheckpointMetadata {
  int64_t step = 0;    ///< the last finished step
  int64_t sample = 0;  ///< global index of the next sample
  std::string job;     ///< the resolved job as TOML
  /// Of the build that wrote it; none in checkpoints of format version 1, where it is not known.
  std::optional<int64_t> numerics_version = kNumericsVersion;
  RunOrigin origin = {};           ///< empty in checkpoints of format versions 1 and 2, as are those that follow
  std::string learning_rate = {};  ///< of the next step: hexadecimal ("0x1.9p-10"), every bit of it
  std::string state = {};          ///< digest of the state (state_digest()): 32 hexadecimal digits

  friend bool operator==(const CheckpointMetadata&, const CheckpointMetadata&) = default;
};

/// A rectangular part of a tensor, stored as one tensor of a safetensors file.
struct ChunkRecord {
  Box box;
  std::string file;    ///< in the checkpoint's folder
  std::string tensor;  ///< name in that file
  std::string digest;  ///< of the bytes: 128 bits, 32 hexadecimal digits
};

struct TensorRecord {
  std::string dtype;  ///< safetensors' spelling
  std::vector<int64_t> shape;
  std::vector<ChunkRecord> chunks;  ///< cover the tensor exactly once
};

struct CheckpointIndex {
  CheckpointMetadata metadata;
  std::map<std::string, TensorRecord> tensors;
};

inline constexpr std::string_view kIndexFile = "index.json";

/// The index as JSON, its own digest included.
std::string index_text(const CheckpointIndex& index);

/// Whether chunks must cover their tensors exactly once, or are those of one process.
enum class Coverage { kWhole, kPart };

/// Reads index_text's result back. FileError that names `path` for anything else, incomplete or overlapping chunks
/// included.
CheckpointIndex parse_index(std::string_view text, const std::string& path, Coverage coverage = Coverage::kWhole);

}  // namespace lockstep::trainer
