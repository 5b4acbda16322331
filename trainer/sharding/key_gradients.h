#pragma once
#include <ATen/Functions.h>

#include <algorithm>
#include <array>
#include <vector>

#include "runtime/tensor/sharded_tensor.h"
#include "trainer/sharding/balanced_rows.h"
#include "trainer/sharding/block_attention.h"

namespace lockstep::trainer {

/// Gradients of keys, or values, from the parts that computed with all of them on their way to who has them.
class KeyGradients {
 public:
  /// `kind` as of BalancedRows.
  KeyGradients(const BalancedRows& rows, bool canonical, uint64_t kind)
      : rows_(rows), canonical_(canonical), tag_(rows.tag(kind)), own_(static_cast<size_t>(rows.parts().count())) {}

  /// What a part's halves made: [nodes, b, h, BalancedRows::keys_of(), ...] each.
  void send_from(int64_t part, const std::array<at::Tensor, 2>& made) {
    for (int64_t of = 0; of < rows_.parts().count(); ++of) {
      auto pieces = pieces_of(part, of, made);
      if (of == part)
        own_[static_cast<size_t>(part)] = std::move(pieces);
      else if (pieces.defined())
        send(pieces, rows_.parts().mesh(of), tag_);
    }
  }

  /// The gradient of what `of` has, from all parts. All of them send before anybody waits.
  at::Tensor joined(int64_t of) const {
    GradientOfKeys sum(spec_of(own_[static_cast<size_t>(of)]), rows_.parts().length());
    for (int64_t from = 0; from < rows_.parts().count(); ++from)
      add(sum, from, of, from == of ? own_[static_cast<size_t>(of)] : arrived(from, of));
    return sum.finish();
  }

 private:
  static constexpr int kKeys = 3;  ///< the dimension of keys in pieces

  int64_t nodes(const TensorSpec& like, const BalancedRows::Half& half) const {
    return GradientOfKeys::nodes(like, half.positions, rows_.parts().length());
  }

  /// Native: one sum of both halves.
  at::Tensor pieces_of(int64_t part, int64_t of, const std::array<at::Tensor, 2>& made) const {
    const auto keys = rows_.parts().positions(of);
    const auto halves = rows_.computed_by(part);
    std::vector<at::Tensor> pieces;
    for (size_t i = 0; i < halves.size(); ++i)
      if (halves[i].meets(of)) pieces.push_back(made[i].narrow(kKeys, keys.start, keys.length));
    if (pieces.empty()) return {};
    if (pieces.size() == 1) return pieces[0].contiguous();
    return canonical_ ? at::cat(pieces, 0) : at::add(pieces[0], pieces[1]);
  }

  /// Laid out as this part's own.
  at::Tensor arrived(int64_t from, int64_t of) const {
    const auto& like = spec_of(own_[static_cast<size_t>(of)]);
    int64_t count = 0;
    for (const auto& half : rows_.computed_by(from))
      if (half.meets(of)) count += nodes(like, half);
    if (count == 0) return {};
    auto sizes = like.sizes;
    sizes[0] = canonical_ ? count : 1;
    const auto& parts = rows_.parts();
    const auto* spec = parts.mesh(of).specs().intern(like.layout, sizes, like.dtype);
    return PendingTransfer(spec, parts.mesh(from), tag_).finish();
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

  const BalancedRows& rows_;
  bool canonical_;
  uint64_t tag_;
  std::vector<at::Tensor> own_;  ///< of what this part has, from itself
};

}  // namespace lockstep::trainer
