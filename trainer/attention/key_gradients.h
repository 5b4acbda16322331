#pragma once
#include <ATen/Functions.h>

#include <algorithm>
#include <array>
#include <map>
#include <vector>

#include "runtime/tensor/sharded_tensor.h"
#include "trainer/attention/block_attention.h"
#include "trainer/attention/query_rows.h"

namespace lockstep::trainer {

/// Gradients of keys, or values, from the parts that computed with all of them on their way to who has them.
class KeyGradients {
 public:
  /// `kind` as of QueryRows.
  KeyGradients(const QueryRows& rows, bool canonical, uint64_t kind)
      : rows_(rows), canonical_(canonical), tag_(rows.tag(kind)), own_(static_cast<size_t>(rows.parts().count())) {}

  /// What a part's halves made: [nodes, b, h, QueryRows::keys_of(), ...] each.
  void send_from(int64_t part, const std::array<at::Tensor, 2>& made) {
    const auto halves = rows_.computed_by(part);
    for (int64_t of = 0; of < rows_.parts().count(); ++of) {
      const auto keys = rows_.parts().positions(of);
      std::array<at::Tensor, 2> block;
      for (size_t i = 0; i < halves.size(); ++i)
        if (halves[i].meets(of)) block[i] = made[i].narrow(kKeys, keys.start, keys.length);
      send_block(part, of, block);
    }
  }

  /// The same of the keys that part `of` has alone; undefined of a half that meets none of them.
  void send_block(int64_t part, int64_t of, const std::array<at::Tensor, 2>& made) {
    auto pieces = joined_halves(made);
    if (of == part) {
      like_[static_cast<size_t>(part)] = &spec_of(pieces);
      own_[static_cast<size_t>(part)] = std::move(pieces);
    } else if (pieces.defined()) {
      send(pieces, rows_.parts().mesh(of), tag_);
    }
  }

  /// Begins to take what `from` sends to `of`, before other transfers from there. REQUIRES: `of` has sent its own.
  void expect(int64_t from, int64_t of) {
    if (const auto* spec = arriving(from, of))
      expected_.emplace(std::pair(from, of), PendingTransfer(spec, rows_.parts().mesh(from), tag_));
  }

  /// The gradient of what `of` has, from all parts. All of them send before anybody waits. Once.
  at::Tensor joined(int64_t of) {
    GradientOfKeys sum(*like_[static_cast<size_t>(of)], rows_.parts().length());
    for (int64_t from = 0; from < rows_.parts().count(); ++from)
      add(sum, from, of, from == of ? std::exchange(own_[static_cast<size_t>(of)], {}) : arrived(from, of));
    return sum.finish();
  }

 private:
  static constexpr int kKeys = 3;  ///< the dimension of keys in pieces

  int64_t nodes(const TensorSpec& like, const QueryRows::Half& half) const {
    return GradientOfKeys::nodes(like, half.positions, rows_.parts().length());
  }

  /// Native: one sum of both halves.
  at::Tensor joined_halves(const std::array<at::Tensor, 2>& made) const {
    if (!made[0].defined() || !made[1].defined())
      return made[0].defined() ? made[0].contiguous() : made[1].defined() ? made[1].contiguous() : at::Tensor();
    return canonical_ ? at::cat({made[0], made[1]}, 0) : at::add(made[0], made[1]);
  }

  /// Laid out as this part's own; null: nothing comes from there.
  const TensorSpec* arriving(int64_t from, int64_t of) const {
    const auto& like = *like_[static_cast<size_t>(of)];
    int64_t count = 0;
    for (const auto& half : rows_.computed_by(from))
      if (half.meets(of)) count += nodes(like, half);
    if (count == 0) return nullptr;
    auto sizes = like.sizes;
    sizes[0] = canonical_ ? count : 1;
    return rows_.parts().mesh(of).specs().intern(like.layout, sizes, like.dtype);
  }

  at::Tensor arrived(int64_t from, int64_t of) {
    if (const auto found = expected_.find({from, of}); found != expected_.end()) return found->second.finish();
    const auto* spec = arriving(from, of);
    return spec ? PendingTransfer(spec, rows_.parts().mesh(from), tag_).finish() : at::Tensor();
  }

  void add(GradientOfKeys& sum, int64_t from, int64_t of, const at::Tensor& pieces) const {
    if (!canonical_) return sum.add({}, pieces);
    int64_t first = 0;
    for (const auto& half : rows_.computed_by(from)) {
      if (half.positions.length == 0) continue;
      const int64_t count = half.meets(of) ? nodes(spec_of(pieces), half) : 0;
      sum.add(half.positions, count > 0 ? pieces.narrow(0, first, count) : at::Tensor());
      first += count;
    }
  }

  const QueryRows& rows_;
  bool canonical_;
  uint64_t tag_;
  std::vector<at::Tensor> own_;  ///< of what this part has, from itself
  std::vector<const TensorSpec*> like_ = std::vector<const TensorSpec*>(own_.size());  ///< how it lies
  std::map<std::pair<int64_t, int64_t>, PendingTransfer> expected_;
};

}  // namespace lockstep::trainer
