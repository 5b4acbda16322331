#pragma once
#include <random>

#include "core/digest/tensor_digest.h"
#include "replay/format/columns.h"
#include "replay/format/recording.h"

/// Recordings changed in one place by somebody who knows the format: what belongs to the change is changed with it.
namespace lockstep::testing {

/// Draws a change and makes it. A change may leave everything as it was.
class RecordingMutator {
 public:
  RecordingMutator(replay::StepRecording& recording, uint64_t seed) : r_(recording), engine_(seed) { read_contents(); }

  /// Says what it did.
  std::string mutate() {
    switch (up_to(12)) {
      case 0:
        return change_rows("scalars", r_.scalars, [this](auto& row) { row.bits ^= one_bit(64); });
      case 1:
        return change_rows("names", r_.names, [this](auto& name) { name += static_cast<char>('a' + up_to(25)); });
      case 2:
        return change_rows("ops", r_.ops, [this](auto& row) { alter(replay::kOpColumns, row); });
      case 3:
        return change_rows("results", r_.results, [this](auto& row) { alter(replay::kResultColumns, row); });
      case 4:
        return change_rows("collectives", r_.collectives,
                           [this](auto& row) { alter(replay::kCollectiveColumns, row); });
      case 5:
        return change_rows("pieces", r_.pieces, [this](auto& row) { alter(replay::kPieceColumns, row); });
      case 6:
        return change_rows("state", r_.state, [this](auto& tensor) { alter_tensor(tensor); });
      case 7:
        return change_batch();
      case 8:
        return change_kinds();
      case 9:
        return change_contents();
      case 10:
        return end_early();
      case 11:
        return swap_events();
      default:
        return change_job();
    }
  }

 private:
  std::size_t up_to(std::size_t most) { return std::uniform_int_distribution<std::size_t>(0, most)(engine_); }
  uint64_t one_bit(std::size_t bits) { return uint64_t{1} << up_to(bits - 1); }
  template <class Rows>
  auto any_of(Rows& rows) {
    return rows.begin() + static_cast<std::ptrdiff_t>(up_to(rows.size() - 1));
  }

  template <class Row, class Alter>
  std::string change_rows(const std::string& table, std::vector<Row>& rows, const Alter& alter_row) {
    if (rows.empty()) return table + " has no rows";
    switch (up_to(5)) {
      case 0:
        return rows.clear(), table + " emptied";
      case 1:
        return rows.erase(any_of(rows)), table + " lacks a row";
      case 2:
        return rows.push_back(*any_of(rows)), table + " has a row twice";
      case 3:
        return std::iter_swap(any_of(rows), any_of(rows)), table + " has two rows swapped";
      case 4:
        return rows.resize(up_to(rows.size())), table + " is cut";
      default:
        return alter_row(*any_of(rows)), table + " has a row altered";
    }
  }

  /// One bit of one column.
  template <class Row>
  void alter(std::span<const replay::Column> columns, Row& row) {
    const auto& column = columns[up_to(columns.size() - 1)];
    auto* const bytes = reinterpret_cast<std::byte*>(&row) + column.offset;
    bytes[up_to(replay::size_of(column.cell) - 1)] ^= static_cast<std::byte>(one_bit(8));
  }

  /// So that no rounding hides it: the highest bit of a float's exponent; or another name, or other sizes.
  void alter_tensor(replay::RecordedTensor& tensor) {
    const auto kind = up_to(3);
    if (kind == 0) tensor.name += "x";
    if (kind == 1 && !tensor.sizes.empty()) tensor.sizes[0] += 1;
    if (kind == 2) tensor.dtype = static_cast<int8_t>(up_to(15));
    if (kind == 3 && tensor.bytes.size() >= 4)
      tensor.bytes[4 * up_to(tensor.bytes.size() / 4 - 1) + 3] ^= std::byte{0x40};
  }

  std::string change_batch() {
    auto& ids = r_.positions.empty() || up_to(2) > 0 ? (up_to(1) == 0 ? r_.tokens : r_.labels) : r_.positions;
    static constexpr int32_t kIds[] = {0, 1, 28, 29, -1, -100, 1 << 30, -(1 << 30)};
    const auto kind = up_to(4);
    if (kind == 0) std::swap(r_.rows, r_.seq_len);
    if (kind == 1) ids.pop_back();
    if (kind == 2) r_.first_sample += 1, r_.next_sample += up_to(1) == 0 ? 1 : 0;
    if (kind >= 3) *any_of(ids) = kIds[up_to(std::size(kIds) - 1)];
    return "batch changed";
  }

  /// All results, or one op's, are of a kind that is not compared by bytes, or are gone.
  std::string change_kinds() {
    const auto kind = static_cast<replay::ResultKind>(1 + up_to(1));
    const auto op = r_.results[up_to(r_.results.size() - 1)].op;
    const bool all = up_to(1) == 0, gone = up_to(2) == 0;
    if (gone) {
      std::erase_if(r_.results, [&](const auto& result) { return all || result.op == op; });
      return "results gone";
    }
    for (auto& result : r_.results)
      if (all || result.op == op) result.kind = kind, result.bytes = 0, result.digest = {};
    return "results are not compared";
  }

  /// Other pieces, with digests, ranges and payload as they have to be.
  std::string change_contents() {
    if (contents_.empty()) return "no pieces";
    const auto place = any_of(contents_);
    const auto index = static_cast<std::size_t>(place - contents_.begin());
    const auto kind = up_to(2);
    if (kind == 0) {
      contents_.erase(place);
      r_.pieces.erase(r_.pieces.begin() + static_cast<std::ptrdiff_t>(index));
      --owner_of(index).pieces;
    } else if (kind == 1 && !place->empty()) {
      (*place)[up_to(place->size() - 1)] ^= std::byte{0x40};
    } else {
      place->resize(place->size() / 2);
    }
    write_contents();
    return kind == 0 ? "a piece gone" : "a piece altered";
  }

  replay::RecordedCollective& owner_of(std::size_t piece) {
    return *std::find_if(r_.collectives.begin(), r_.collectives.end(),
                         [&](const auto& c) { return piece < std::size_t{c.first_piece} + c.pieces; });
  }

  void read_contents() {
    for (const auto& piece : r_.pieces) {
      const auto* from = r_.payload.data() + piece.offset;
      contents_.emplace_back(from, from + piece.bytes);
    }
  }

  void write_contents() {
    r_.payload.clear();
    for (std::size_t p = 0; p < contents_.size(); ++p) {
      r_.pieces[p].bytes = contents_[p].size();
      r_.pieces[p].digest = tensor_digest(contents_[p]);
      r_.pieces[p].offset = r_.payload.size();
      r_.payload.insert(r_.payload.end(), contents_[p].begin(), contents_[p].end());
    }
    uint32_t next = 0;
    for (auto& collective : r_.collectives)
      next += collective.pieces, collective.first_piece = next - collective.pieces;
  }

  /// What two collectives were for, and nothing else of them.
  std::string swap_events() {
    if (r_.collectives.empty()) return "no collectives";
    auto &one = *any_of(r_.collectives), &other = *any_of(r_.collectives);
    const auto kind = up_to(2);
    if (kind == 0) std::swap(one.purpose, other.purpose);
    if (kind == 1) std::swap(one.group, other.group);
    if (kind == 2) std::swap(one.number, other.number);
    return "two collectives' purposes, groups or numbers swapped";
  }

  std::string end_early() {
    r_.complete = false;
    r_.reason = up_to(1) == 0 ? "" : "a reason";
    if (up_to(1) == 0) return "incomplete";
    r_.ops.resize(up_to(r_.ops.size()));
    std::erase_if(r_.results, [&](const auto& result) { return result.op >= r_.ops.size(); });
    if (up_to(1) == 0) r_.results.clear();
    return "incomplete and cut";
  }

  std::string change_job() {
    auto& job = r_.job;
    const auto line = job.find('\n', up_to(job.size() - 1));
    const auto kind = up_to(3);
    if (kind == 0) job = job.substr(0, up_to(job.size()));
    if (kind == 1 && line != job.npos) job.insert(line + 1, "no_such_key = 1\n");
    if (kind == 2) job[up_to(job.size() - 1)] = static_cast<char>('0' + up_to(9));
    if (kind == 3) job.clear();
    return "job changed";
  }

  replay::StepRecording& r_;
  std::mt19937_64 engine_;
  std::vector<replay::Bytes> contents_;  ///< of the pieces
};

}  // namespace lockstep::testing
