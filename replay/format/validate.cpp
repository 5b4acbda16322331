#include "replay/format/validate.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <utility>

#include "core/collective_kind.h"
#include "core/document_places.h"
#include "core/error.h"
#include "core/mesh_text.h"
#include "core/numerics_version.h"
#include "core/phase.h"
#include "replay/format/datasets.h"
#include "replay/format/dtypes.h"
#include "replay/format/recorded_numerics.h"
#include "replay/format/require.h"
#include "replay/format/validate_order.h"

namespace lockstep::replay {
namespace {

constexpr uint8_t kResultKinds = 4;

void require_text(std::string_view what, std::string_view text, std::size_t limit) {
  require(text.size() <= limit, "{} has {} bytes, more than {}", what, text.size(), limit);
  require(text.find('\0') == text.npos, "{} has a zero in it", what);
}

template <class Rows>
void require_rows(std::string_view table, const Rows& rows) {
  require(rows.size() <= kMaxRows, "{} has {} rows, more than {}", table, rows.size(), kMaxRows);
}

void check_header(const StepRecording& r) {
  require(r.world >= 1 && r.world <= kMaxRanks && r.rank >= 0 && r.rank < r.world, "rank {} of {}", r.rank, r.world);
  require(r.step >= 0 && r.first_sample >= 0, "step {}, first sample {}", r.step, r.first_sample);
  require(!r.complete || r.reason.empty(), "a complete step has no reason to end early: {}", r.reason);
  require_text("/reason", r.reason, kMaxText);
  require_text("/job", r.job, kMaxText);
}

void check_machine(const StepRecording& r) {
  std::size_t size = 0;
  for (const auto& [key, value] : r.machine) {
    require(!key.empty() && key.find_first_of("=\n") == key.npos, "/machine has a key '{}'", key);
    require(value.find('\n') == value.npos, "/machine has a newline in the value of {}", key);
    require_text("/machine", key, kMaxText);
    require_text("/machine", value, kMaxText);
    size += key.size() + value.size() + 4;  // " = " and the newline
  }
  require(size <= kMaxText, "/machine has {} bytes, more than {}", size, kMaxText);
}

void check_numerics(const StepRecording& r) {
  bool is_there = false;
  for (const auto& [key, value] : r.machine) {
    if (key != kNumericsFact) continue;
    require(!std::exchange(is_there, true), "/machine has {} twice", key);
    require(parse_numerics_version(value).has_value(), "/machine has {} = '{}', not a number from 0 to {}", key, value,
            kMostNumericsVersion);
  }
}

/// A token follows the one before in its document, or begins one, as every sample does.
void check_positions(const StepRecording& r) {
  if (r.positions.empty()) return;
  require(r.positions.size() == r.tokens.size(), "/batch has {} tokens and {} positions", r.tokens.size(),
          r.positions.size());
  const auto length = static_cast<std::size_t>(r.seq_len);
  if (const auto wrong = first_wrong_place(std::span(r.positions), length))
    fail<BadInput>("/batch/positions has {} at [{}, {}]", r.positions[*wrong], *wrong / length, *wrong % length);
}

void check_batch(const StepRecording& r) {
  constexpr int64_t kMax = int64_t{1} << 40;
  require(r.rows >= 0 && r.seq_len >= 0 && r.rows < kMax && r.seq_len < kMax, "/batch has {} x {} tokens", r.rows,
          r.seq_len);
  int64_t next = 0;
  const bool is_next = !__builtin_add_overflow(r.first_sample, r.rows, &next) && r.next_sample == next;
  require(is_next, "{} samples from {} on are not followed by sample {}", r.rows, r.first_sample, r.next_sample);
  int64_t count = 0;
  const bool fits = !__builtin_mul_overflow(r.rows, r.seq_len, &count);
  const auto size = static_cast<std::size_t>(count);
  require(fits && r.tokens.size() == size && r.labels.size() == size, "/batch has {} tokens and {} labels for {} x {}",
          r.tokens.size(), r.labels.size(), r.rows, r.seq_len);
  check_positions(r);
}

void check_names(const StepRecording& r) {
  require_rows("/scalars", r.scalars);
  for (const auto& scalar : r.scalars) require_text("a name in /scalars", scalar.name, kScalarNameSize - 1);
  require_rows("/names", r.names);
  for (const auto& name : r.names) require_text("a name in /names", name, kMaxName);
}

void check_name(const StepRecording& r, std::string_view table, std::size_t row, Name name) {
  require(name < r.names.size(), "{} row {}: name {} of {}", table, row, name, r.names.size());
}

void check_id(const StepRecording& r, std::string_view table, std::size_t row, const RecordedId& id) {
  require(id.phase < std::size(kPhaseNames), "{} row {}: phase {}", table, row, id.phase);
  check_name(r, table, row, id.module);
  check_name(r, table, row, id.op);
}

void check_ops(const StepRecording& r) {
  require_rows("/ops", r.ops);
  for (std::size_t row = 0; row < r.ops.size(); ++row) {
    check_id(r, "/ops", row, r.ops[row].id);
    require(r.ops[row].begin <= r.ops[row].end, "/ops row {} ends before it begins", row);
  }
}

void check_results(const StepRecording& r) {
  require_rows("/results", r.results);
  for (std::size_t row = 0; row < r.results.size(); ++row) {
    const auto& result = r.results[row];
    require(result.op < r.ops.size(), "/results row {}: op {} of {}", row, result.op, r.ops.size());
    require(static_cast<uint8_t>(result.kind) < kResultKinds, "/results row {}: kind {}", row,
            static_cast<int>(result.kind));
    check_name(r, "/results", row, result.layout);
  }
}

void check_collectives(const StepRecording& r) {
  require_rows("/collectives", r.collectives);
  for (std::size_t row = 0; row < r.collectives.size(); ++row) {
    const auto& c = r.collectives[row];
    check_id(r, "/collectives", row, c.id);
    check_name(r, "/collectives", row, c.mesh);
    check_name(r, "/collectives", row, c.axis);
    require(c.kind < kCollectiveKinds, "/collectives row {}: kind {}", row, c.kind);
    require(find_dtype(c.dtype) != nullptr, "/collectives row {}: dtype {}", row, c.dtype);
    require(uint64_t{c.first_piece} + c.pieces <= r.pieces.size(), "/collectives row {}: pieces {} to {} of {}", row,
            c.first_piece, uint64_t{c.first_piece} + c.pieces, r.pieces.size());
    require(c.begin <= c.end, "/collectives row {} ends before it begins", row);
  }
}

void check_pieces(const StepRecording& r) {
  require_rows("/pieces", r.pieces);
  for (std::size_t row = 0; row < r.pieces.size(); ++row) {
    const auto& p = r.pieces[row];
    require(p.source >= 0 && p.source < r.world, "/pieces row {}: from rank {} of {}", row, p.source, r.world);
    if (p.offset == kNoPayload) continue;
    require(p.offset <= r.payload.size() && p.bytes <= r.payload.size() - p.offset,
            "/pieces row {}: {} bytes at {} of a payload of {}", row, p.bytes, p.offset, r.payload.size());
  }
}

void check_tensor(const RecordedTensor& tensor) {
  require(!tensor.name.empty() && tensor.name != "." && tensor.name.find('/') == tensor.name.npos,
          "'{}' in /state is no name", tensor.name);
  require_text("a name in /state", tensor.name, kMaxName);
  const auto* dtype = find_dtype(tensor.dtype);
  require(dtype != nullptr, "/state/{} has dtype {}", tensor.name, tensor.dtype);
  require(tensor.sizes.size() <= kMaxDimensions, "/state/{} has {} dimensions", tensor.name, tensor.sizes.size());
  uint64_t bytes = dtype->size;
  bool fits = true;
  for (const auto size : tensor.sizes)
    fits = fits && size >= 0 && !__builtin_mul_overflow(bytes, static_cast<uint64_t>(size), &bytes);
  require(fits && bytes == tensor.bytes.size(), "/state/{} has {} bytes for sizes [{}]", tensor.name,
          tensor.bytes.size(), fmt::join(tensor.sizes, ", "));
}

void check_state_digest(const std::string& text) {
  const bool is_digest = text.size() == 32 && text.find_first_not_of("0123456789abcdef") == text.npos;
  require(text.empty() || is_digest, "state_digest '{}' is no digest", text);
}

void check_state(const StepRecording& r) {
  check_state_digest(r.state_digest);
  require(r.has_state || r.state.empty(), "{} tensors of a state that is not recorded", r.state.size());
  require_rows("/state", r.state);
  std::set<std::string_view> names;
  for (const auto& tensor : r.state) {
    check_tensor(tensor);
    require(names.insert(tensor.name).second, "/state/{} is there twice", tensor.name);
  }
}

}  // namespace

void validate(const StepRecording& recording) {
  check_header(recording);
  check_machine(recording);
  check_numerics(recording);
  check_batch(recording);
  check_names(recording);
  check_ops(recording);
  check_results(recording);
  check_collectives(recording);
  check_pieces(recording);
  check_state(recording);
  validate_order(recording);
}

}  // namespace lockstep::replay
