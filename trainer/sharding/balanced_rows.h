#pragma once
#include <ATen/core/Tensor.h>

#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/transfer/transfer.h"
#include "trainer/sharding/sequence_parts.h"

namespace lockstep::trainer {

/// Which query rows of a cut sequence are computed where: each part keeps its first half and has the second half of its
/// partner, the part as far from the end as it is from the beginning. Under canonical numerics
/// halves end between leaves of the tree over rows.
class BalancedRows {
 public:
  /// In one call of attention, or in its backward: all ranks alike. `module`: of whose scope the backward is to be;
  /// empty: of the one that is open.
  explicit BalancedRows(const TensorSpec& query, std::string module = "")
      : parts_(query), module_(std::move(module)), number_(attention_number()) {}

  struct Half {
    int64_t owner;    ///< the part that has these rows
    Range positions;  ///< in the sequence; perhaps none
    /// Whether it attends to keys of part `of`.
    bool meets(int64_t of) const;
  };

  const SequenceParts& parts() const { return parts_; }
  /// for_each_part_here(), in the module's scopes.
  template <class Work>
  void for_each_here(const Work& work) const {
    for_each_part_here(parts_, module_, work);
  }
  /// What a part computes: its own first half, its partner's second.
  std::array<Half, 2> computed_by(int64_t part) const { return {first(part), second(partner(part))}; }
  /// Keys from the first of the sequence on, as many as may meet a half.
  Range keys_of(const Half& half) const { return {0, parts_.positions(half.owner).end()}; }

  /// Of each part the rows that it computes with, [part][half]; undefined where there are none, or the part is not
  /// here.
  using Halves = std::vector<std::array<at::Tensor, 2>>;
  /// `whole`, laid out as the query, to where its rows are computed with.
  Halves spread(const at::Tensor& whole, uint64_t kind) const;
  /// The way back, to a tensor of `spec`.
  at::Tensor collect(const Halves& halves, const TensorSpec* spec, uint64_t kind) const;

  /// Of a transfer; `kind` < 8 tells those of one call from one another.
  uint64_t tag(uint64_t kind) const { return number_ << 3 | kind; }

 private:
  int64_t partner(int64_t part) const;
  int64_t middle(int64_t part) const;
  Half first(int64_t part) const;
  Half second(int64_t part) const;
  at::Tensor rows_of(const at::Tensor& mine, const Half& half) const;
  using Arriving = std::vector<std::optional<PendingTransfer>>;
  void exchange(int64_t part, const at::Tensor& leaving, const TensorSpec& whole, const Half& coming, uint64_t kind,
                Arriving& arriving) const;

  SequenceParts parts_;
  std::string module_;
  uint64_t number_;
};

}  // namespace lockstep::trainer
