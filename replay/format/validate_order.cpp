#include "replay/format/validate_order.h"

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <string_view>

#include "replay/format/require.h"

namespace lockstep::replay {
namespace {

void check_names(const StepRecording& r) {
  std::set<std::string_view> names, scalars;
  for (const auto& name : r.names) require(names.insert(name).second, "/names has '{}' twice", name);
  for (const auto& scalar : r.scalars)
    require(scalars.insert(scalar.name).second, "/scalars has '{}' twice", scalar.name);
}

template <class Row>
void check_begins(std::string_view table, const std::vector<Row>& rows) {
  for (std::size_t row = 1; row < rows.size(); ++row)
    require(rows[row - 1].begin <= rows[row].begin, "{} row {} begins before the row before it", table, row);
}

/// None is left out: every mesh counts its own from 0 on.
void check_numbers(const StepRecording& r) {
  std::map<Name, uint64_t> due;
  for (std::size_t row = 0; row < r.collectives.size(); ++row) {
    const auto& collective = r.collectives[row];
    auto& next = due[collective.mesh];
    require(collective.number == next, "/collectives row {} is number {} of its mesh, number {} is due", row,
            collective.number, next);
    ++next;
  }
}

/// What is no digest is not known.
void check_kind(const RecordedResult& result, std::size_t row) {
  require(result.kind == ResultKind::kDigest || (result.bytes == 0 && result.digest == Digest{}),
          "/results row {} is of a kind that has no digest, and has one", row);
}

/// Ops within an op end before it, and their results come first.
void check_results(const StepRecording& r) {
  std::vector<bool> seen(r.ops.size());
  for (std::size_t row = 0; row < r.results.size(); ++row) {
    const auto& result = r.results[row];
    check_kind(result, row);
    const auto* before = row == 0 ? nullptr : &r.results[row - 1];
    if (before && before->op == result.op) {
      require(result.index == uint64_t{before->index} + 1, "/results row {} is number {} of op {}, number {} is due",
              row, result.index, result.op, uint64_t{before->index} + 1);
      continue;
    }
    require(result.index == 0 && !seen[result.op], "/results row {} is number {} of op {}, apart from the others", row,
            result.index, result.op);
    seen[result.op] = true;
    require(!before || r.ops[before->op].end <= r.ops[result.op].end,
            "/results row {} is of op {}, which ended before op {} of the row before", row, result.op,
            before ? before->op : 0);
  }
}

/// Those of one collective. Of the last one of a step that ended early a few may have come.
void check_group(std::span<const RecordedPiece> pieces, std::size_t collective, bool may_lack) {
  const auto is_first = [](const RecordedPiece& piece) { return piece.tensor == 0; };
  const auto senders =
      static_cast<std::size_t>(std::find_if_not(pieces.begin(), pieces.end(), is_first) - pieces.begin());
  for (std::size_t p = 0; p < pieces.size(); ++p) {
    const bool is_due =
        senders > 0 && pieces[p].tensor == p / senders && pieces[p].source == pieces[p % senders].source;
    require(is_due, "/collectives row {}: its piece {} is tensor {} of rank {}, which is not due there", collective, p,
            pieces[p].tensor, pieces[p].source);
    require(p == 0 || p >= senders || pieces[p - 1].source < pieces[p].source,
            "/collectives row {}: its piece {} is of rank {}, after that of rank {}", collective, p, pieces[p].source,
            p == 0 ? 0 : pieces[p - 1].source);
  }
  require(may_lack || senders == 0 || pieces.size() % senders == 0, "/collectives row {}: {} pieces of {} senders",
          collective, pieces.size(), senders);
}

void check_pieces(const StepRecording& r) {
  std::size_t next = 0;
  for (std::size_t row = 0; row < r.collectives.size(); ++row) {
    const auto& collective = r.collectives[row];
    require(collective.first_piece == next, "/collectives row {}: its pieces begin at {}, {} is due", row,
            collective.first_piece, next);
    const bool may_lack = !r.complete && row + 1 == r.collectives.size();
    check_group(std::span(r.pieces).subspan(next, collective.pieces), row, may_lack);
    next += collective.pieces;
  }
  require(next == r.pieces.size(), "/pieces has {} rows, {} are of collectives", r.pieces.size(), next);
}

void check_payload(const StepRecording& r) {
  uint64_t end = 0;
  for (std::size_t row = 0; row < r.pieces.size(); ++row) {
    const auto& piece = r.pieces[row];
    require((piece.offset == kNoPayload) == (r.pieces[0].offset == kNoPayload),
            "/pieces row {}: of some pieces the payload is kept, of others it is not", row);
    if (piece.offset == kNoPayload) continue;
    const bool is_new = piece.offset == end;
    if (is_new) end += piece.bytes;
    require(is_new || piece.offset + piece.bytes <= end, "/pieces row {}: its payload is at {}, {} is due", row,
            piece.offset, end);
  }
  require(end == r.payload.size(), "/payload has {} bytes, {} are of pieces", r.payload.size(), end);
}

}  // namespace

void validate_order(const StepRecording& recording) {
  check_names(recording);
  check_begins("/ops", recording.ops);
  check_begins("/collectives", recording.collectives);
  check_numbers(recording);
  check_results(recording);
  check_pieces(recording);
  check_payload(recording);
}

}  // namespace lockstep::replay
