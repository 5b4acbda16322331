#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/digest/digest.h"

/// What one rank did in one step, as plain data. FORMAT.md says how it lies in a file; names here are those there.
namespace lockstep::replay {

using Bytes = std::vector<std::byte>;

/// An index into StepRecording::names.
using Name = uint32_t;

/// Names an op (or the op that a collective belongs to) within its step: the same on every mesh.
struct RecordedId {
  uint8_t phase = 0;  ///< Phase
  int32_t microbatch = 0;
  Name module = 0;  ///< "layers.3.attention"; empty at the top
  Name op = 0;      ///< "linear"
  uint32_t occurrence = 0;
  bool operator==(const RecordedId&) const = default;
};

/// One dispatched op, in the order of the program.
struct RecordedOp {
  RecordedId id;
  uint64_t begin = 0, end = 0;  ///< nanoseconds since the step began
  bool operator==(const RecordedOp&) const = default;
};

/// What is known of a result.
enum class ResultKind : uint8_t {
  kDigest = 0,     ///< the digest of its bytes, row-major
  kAlias = 1,      ///< it shares an operand's bytes: its layout alone
  kPending = 2,    ///< its bytes arrive later, in a collective that is recorded itself
  kUnwritten = 3,  ///< memory that nobody has written yet: its layout alone
};

/// The rank's part of one result of an op, or of one operand that the op wrote in place.
struct RecordedResult {
  uint32_t op = 0;     ///< index into ops
  uint32_t index = 0;  ///< which result
  ResultKind kind = ResultKind::kDigest;
  Name layout = 0;  ///< "float [64, 256] [dp_shard=S(0), tp=R]": dtype, global sizes, placements
  uint64_t bytes = 0;
  Digest digest;
  bool operator==(const RecordedResult&) const = default;
};

/// One exchange, in the order of the program.
struct RecordedCollective {
  RecordedId id;                         ///< of the op that asked for it
  uint64_t number = 0;                   ///< how many of the step came before it on its mesh
  Name mesh = 0;                         ///< "dp_shard=2,tp=2"
  Name axis = 0;                         ///< "tp"
  uint8_t kind = 0;                      ///< CollectiveKind
  int8_t dtype = 0;                      ///< c10::ScalarType
  uint32_t purpose = 0;                  ///< MessageHeader::purpose: the op and what is moved
  uint64_t group = 0;                    ///< MessageHeader::group: the ranks that take part
  uint32_t first_piece = 0, pieces = 0;  ///< a range of StepRecording::pieces
  uint64_t begin = 0, end = 0;           ///< nanoseconds since the step began
  bool operator==(const RecordedCollective&) const = default;
};

/// What another rank sent in a collective: one tensor of a bundle.
struct RecordedPiece {
  int32_t source = 0;   ///< a rank
  uint32_t tensor = 0;  ///< which of the bundle
  uint64_t bytes = 0;
  uint64_t offset = 0;  ///< into the payload; kNoPayload if it was not kept
  Digest digest;
  bool operator==(const RecordedPiece&) const = default;
};
inline constexpr uint64_t kNoPayload = ~uint64_t{0};

/// A tensor of the state at the step's start, the rank's own part. `name` as in checkpoints: "NAME",
/// "optimizer.mean.NAME", "optimizer.square.NAME".
struct RecordedTensor {
  std::string name;
  int8_t dtype = 0;  ///< c10::ScalarType
  std::vector<int64_t> sizes;
  Bytes bytes;
  bool operator==(const RecordedTensor&) const = default;
};

/// A number that the step was given or derived, as the bits of a double.
struct RecordedScalar {
  std::string name;
  uint64_t bits = 0;
  bool operator==(const RecordedScalar&) const = default;
};

struct StepRecording {
  int32_t rank = 0, world = 1;
  int64_t step = 0;
  bool complete = true;  ///< false: the step ended early; `reason` says why
  std::string reason;
  std::string job;                                           ///< resolved, TOML
  std::vector<std::pair<std::string, std::string>> machine;  ///< what it ran on, key and value
  int64_t first_sample = 0, rows = 0, seq_len = 0;           ///< the global batch
  int64_t next_sample = 0;                                   ///< the next step's first: first_sample + rows
  std::vector<int32_t> tokens, labels;                       ///< [rows, seq_len]
  std::vector<int32_t> positions;  ///< of each token in its document; empty: each sample is one
  std::vector<RecordedScalar> scalars;
  std::vector<std::string> names;
  std::vector<RecordedOp> ops;
  std::vector<RecordedResult> results;
  std::vector<RecordedCollective> collectives;
  std::vector<RecordedPiece> pieces;
  Bytes payload;
  bool has_state = false;  ///< without it the state is that of the step before
  std::vector<RecordedTensor> state;
  std::string state_digest;  ///< of the whole state after the step, equal on every mesh; empty: not known
  bool operator==(const StepRecording&) const = default;
};

}  // namespace lockstep::replay
