#pragma once
#include <ATen/core/Tensor.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/transfer/transfer.h"
#include "trainer/attention/sequence_parts.h"

namespace lockstep::trainer {

/// kHeadTail: causal attention has as many keys on every part.
enum class Balance : uint8_t { kNone, kHeadTail };

/// What one call of attention sends from part to part, each under a tag of its own (QueryRows::tag()).
enum Sent : uint8_t {
  kKey,
  kValue,
  kQuery,
  kOutput,
  kGradient,
  kQueryGradient,
  kKeyGradient,
  kValueGradient,
  kPlaces,
  kDraws
};

/// Which query rows of a cut sequence are computed where. Balanced, each part keeps its first half and has the second
/// half of its partner, the part as far from the end as it is from the beginning; else its second half is empty. Under
/// canonical numerics halves end between leaves of the tree over rows.
class QueryRows {
 public:
  /// In one call of attention, or in its backward: all ranks alike. `module`: of whose scope the backward is to be;
  /// empty: of the one that is open.
  QueryRows(const TensorSpec& query, Balance balance, std::string module = "")
      : parts_(query), balance_(balance), module_(std::move(module)), number_(attention_number()) {}

  struct Half {
    int64_t owner;    ///< the part that has these rows
    Range positions;  ///< in the sequence; perhaps none
    /// Whether it attends to keys of part `of`.
    bool meets(int64_t of) const;
  };

  const SequenceParts& parts() const { return parts_; }
  /// for_each_part_here(), in the module's scopes.
  template <class Work>
  void for_each_here(const Work& work, int64_t first = 0) const {
    for_each_part_here(parts_, module_, work, first);
  }
  /// work(part, of): keys of one part after the other, of each the part that has them first.
  template <class Work>
  void for_each_block_here(const Work& work) const {
    for (int64_t of = 0; of < parts_.count(); ++of)
      for_each_here([&](int64_t part) { return takes(part, of) ? work(part, of) : void(); }, of);
  }

  /// What a part computes: its own first half, its partner's second.
  std::array<Half, 2> computed_by(int64_t part) const { return {first(part), second(partner(part))}; }
  /// Whether a part has keys of part `of`, or attends to them.
  bool takes(int64_t part, int64_t of) const;
  /// Keys from the first of the sequence on, as many as may meet a half.
  Range keys_of(const Half& half) const { return {0, parts_.positions(half.owner).end()}; }

  /// Of each part the rows that it computes with, [part][half]; undefined where there are none, or the part is not
  /// here.
  using Halves = std::vector<std::array<at::Tensor, 2>>;
  /// `whole`, laid out as the query, to where its rows are computed with.
  Halves spread(const at::Tensor& whole, uint64_t kind) const;
  /// The way back, to a tensor of `spec`; it may be a view of first halves.
  at::Tensor collect(const Halves& halves, const TensorSpec* spec, uint64_t kind) const;

  /// Appends to `kept` what backward needs of `halves`: all, or those of others' rows.
  void keep(const Halves& halves, bool own_too, std::vector<at::Tensor>& kept) const;
  /// What was kept, from `next` on, which is left behind it; of a part's own rows out of `whole`, if it is defined.
  Halves restored(const at::Tensor& whole, const at::Tensor*& next) const;

  /// Of a transfer; `kind` (Sent) tells those of one call from one another, and `of` < 2^20 those of a kind.
  uint64_t tag(uint64_t kind, int64_t of = 0) const { return number_ << 24 | static_cast<uint64_t>(of) << 4 | kind; }

 private:
  int64_t partner(int64_t part) const;
  int64_t middle(int64_t part) const;
  Half first(int64_t part) const;
  Half second(int64_t part) const;
  at::Tensor rows_of(const at::Tensor& mine, const Half& half) const;
  /// Those of each part's rows that it computes with itself.
  Halves own(const at::Tensor& whole) const;
  using Arriving = std::vector<std::optional<PendingTransfer>>;
  void exchange(int64_t part, const at::Tensor& leaving, const TensorSpec& whole, const Half& coming, uint64_t kind,
                Arriving& arriving) const;

  SequenceParts parts_;
  Balance balance_;
  std::string module_;
  uint64_t number_;
};

}  // namespace lockstep::trainer
