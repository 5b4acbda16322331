#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "replay/format/recording.h"

/// Tables as FORMAT.md lists them: the columns of a row, one after the other without gaps, little endian.
namespace lockstep::replay {

enum class Cell : uint8_t { kUint8, kInt8, kInt32, kUint32, kUint64, kString48 };

inline constexpr std::size_t kScalarNameSize = 48;  ///< with a zero at the end

constexpr std::size_t size_of(Cell cell) {
  constexpr std::size_t kSizes[] = {1, 1, 4, 4, 8, kScalarNameSize};
  return kSizes[static_cast<std::size_t>(cell)];
}

/// One column: its name and type in the file, and where its value lies in the row's struct.
struct Column {
  const char* name;
  Cell cell;
  std::size_t offset;
};

/// Bytes of a row in the file.
constexpr std::size_t row_size(std::span<const Column> columns) {
  std::size_t size = 0;
  for (const auto& column : columns) size += size_of(column.cell);
  return size;
}

/// RecordedScalar with a name that ends in zeros.
struct ScalarRow {
  char name[kScalarNameSize] = {};
  uint64_t bits = 0;
};

extern const std::span<const Column> kScalarColumns, kOpColumns, kResultColumns, kCollectiveColumns, kPieceColumns;

namespace detail {
void pack_rows(std::span<const Column> columns, const std::byte* rows, std::size_t stride, Bytes& packed);
void unpack_rows(std::span<const Column> columns, std::span<const std::byte> packed, std::byte* rows,
                 std::size_t stride);
}  // namespace detail

/// The rows as they lie in the file.
template <class Row>
Bytes pack(std::span<const Column> columns, const std::vector<Row>& rows) {
  Bytes packed(rows.size() * row_size(columns));
  detail::pack_rows(columns, reinterpret_cast<const std::byte*>(rows.data()), sizeof(Row), packed);
  return packed;
}

/// The inverse. REQUIRES: `packed` holds whole rows.
template <class Row>
std::vector<Row> unpack(std::span<const Column> columns, std::span<const std::byte> packed) {
  std::vector<Row> rows(packed.size() / row_size(columns));
  detail::unpack_rows(columns, packed, reinterpret_cast<std::byte*>(rows.data()), sizeof(Row));
  return rows;
}

}  // namespace lockstep::replay
