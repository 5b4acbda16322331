#include "replay/format/columns.h"

#include <bit>
#include <cstring>

namespace lockstep::replay {
namespace {

static_assert(std::endian::native == std::endian::little, "rows are little-endian");

using enum Cell;

constexpr Column kScalars[] = {{"name", kString48, offsetof(ScalarRow, name)},
                               {"bits", kUint64, offsetof(ScalarRow, bits)}};

constexpr Column kOps[] = {
    {"phase", kUint8, offsetof(RecordedOp, id.phase)},
    {"microbatch", kInt32, offsetof(RecordedOp, id.microbatch)},
    {"module", kUint32, offsetof(RecordedOp, id.module)},
    {"op", kUint32, offsetof(RecordedOp, id.op)},
    {"occurrence", kUint32, offsetof(RecordedOp, id.occurrence)},
    {"begin", kUint64, offsetof(RecordedOp, begin)},
    {"end", kUint64, offsetof(RecordedOp, end)},
};

constexpr Column kResults[] = {
    {"op", kUint32, offsetof(RecordedResult, op)},
    {"index", kUint32, offsetof(RecordedResult, index)},
    {"kind", kUint8, offsetof(RecordedResult, kind)},
    {"layout", kUint32, offsetof(RecordedResult, layout)},
    {"bytes", kUint64, offsetof(RecordedResult, bytes)},
    {"digest_high", kUint64, offsetof(RecordedResult, digest.high)},
    {"digest_low", kUint64, offsetof(RecordedResult, digest.low)},
};

constexpr Column kCollectives[] = {
    {"phase", kUint8, offsetof(RecordedCollective, id.phase)},
    {"microbatch", kInt32, offsetof(RecordedCollective, id.microbatch)},
    {"module", kUint32, offsetof(RecordedCollective, id.module)},
    {"op", kUint32, offsetof(RecordedCollective, id.op)},
    {"occurrence", kUint32, offsetof(RecordedCollective, id.occurrence)},
    {"number", kUint64, offsetof(RecordedCollective, number)},
    {"mesh", kUint32, offsetof(RecordedCollective, mesh)},
    {"axis", kUint32, offsetof(RecordedCollective, axis)},
    {"kind", kUint8, offsetof(RecordedCollective, kind)},
    {"dtype", kInt8, offsetof(RecordedCollective, dtype)},
    {"purpose", kUint32, offsetof(RecordedCollective, purpose)},
    {"group", kUint64, offsetof(RecordedCollective, group)},
    {"first_piece", kUint32, offsetof(RecordedCollective, first_piece)},
    {"pieces", kUint32, offsetof(RecordedCollective, pieces)},
    {"begin", kUint64, offsetof(RecordedCollective, begin)},
    {"end", kUint64, offsetof(RecordedCollective, end)},
};

constexpr Column kPieces[] = {
    {"source", kInt32, offsetof(RecordedPiece, source)},
    {"tensor", kUint32, offsetof(RecordedPiece, tensor)},
    {"bytes", kUint64, offsetof(RecordedPiece, bytes)},
    {"offset", kUint64, offsetof(RecordedPiece, offset)},
    {"digest_high", kUint64, offsetof(RecordedPiece, digest.high)},
    {"digest_low", kUint64, offsetof(RecordedPiece, digest.low)},
};

}  // namespace

constexpr std::span<const Column> kScalarColumns = kScalars, kOpColumns = kOps, kResultColumns = kResults,
                                  kCollectiveColumns = kCollectives, kPieceColumns = kPieces;

void detail::pack_rows(std::span<const Column> columns, const std::byte* rows, std::size_t stride, Bytes& packed) {
  std::byte* to = packed.data();
  for (const std::byte* const end = to + packed.size(); to != end; rows += stride)
    for (const auto& column : columns) {
      std::memcpy(to, rows + column.offset, size_of(column.cell));
      to += size_of(column.cell);
    }
}

void detail::unpack_rows(std::span<const Column> columns, std::span<const std::byte> packed, std::byte* rows,
                         std::size_t stride) {
  const std::byte* from = packed.data();
  for (const std::byte* const end = from + packed.size(); from != end; rows += stride)
    for (const auto& column : columns) {
      std::memcpy(rows + column.offset, from, size_of(column.cell));
      from += size_of(column.cell);
    }
}

}  // namespace lockstep::replay
