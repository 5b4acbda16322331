#include "trainer/attention/query_rows.h"

#include <ATen/Functions.h>

#include <algorithm>

#include "runtime/context/world.h"
#include "runtime/kernels/sums/sum_tree.h"
#include "runtime/tensor/sharded_tensor.h"

namespace lockstep::trainer {
namespace {

using at::Tensor;

constexpr int kLength = 2;

Tensor joined(const Tensor& first, const Tensor& second) {
  return second.defined() ? at::cat({first, second}, kLength) : first;
}

}  // namespace

bool QueryRows::Half::meets(int64_t of) const { return positions.length > 0 && owner >= of; }

int64_t QueryRows::partner(int64_t part) const {
  return balance_ == Balance::kHeadTail ? parts_.count() - 1 - part : part;
}

bool QueryRows::takes(int64_t part, int64_t of) const {
  return part == of || std::ranges::any_of(computed_by(part), [&](const Half& half) { return half.meets(of); });
}

int64_t QueryRows::middle(int64_t part) const {
  const auto rows = parts_.positions(part);
  if (balance_ == Balance::kNone) return rows.end();
  const bool canonical = parts_.mesh(part).world().canonical();
  const int64_t leaf = canonical ? SumTree::over_elements(parts_.length()).leaf : 1;
  return std::min((rows.start + (rows.length + 1) / 2 + leaf - 1) / leaf * leaf, rows.end());
}

QueryRows::Half QueryRows::first(int64_t part) const {
  const auto start = parts_.positions(part).start;
  return {part, {start, middle(part) - start}};
}

QueryRows::Half QueryRows::second(int64_t part) const {
  return {part, {middle(part), parts_.positions(part).end() - middle(part)}};
}

/// Of what their owner has.
Tensor QueryRows::rows_of(const Tensor& mine, const Half& half) const {
  if (half.positions.length == 0) return {};
  if (half.positions == parts_.positions(half.owner)) return mine;
  const int64_t first = half.positions.start - parts_.positions(half.owner).start;
  return mine.narrow(kLength, first, half.positions.length).contiguous();
}

/// Between a part and its partner: what leaves, if it is defined, and what comes, if there is any.
void QueryRows::exchange(int64_t part, const Tensor& leaving, const TensorSpec& whole, const Half& coming,
                         uint64_t kind, Arriving& arriving) const {
  const auto& other = parts_.mesh(partner(part));
  if (partner(part) == part) return;
  if (leaving.defined()) send(leaving, other, tag(kind));
  if (coming.positions.length > 0)
    arriving[static_cast<size_t>(part)].emplace(parts_.spec(whole, part, coming.positions.length), other, tag(kind));
}

/// All send before anybody waits.
QueryRows::Halves QueryRows::spread(const Tensor& whole, uint64_t kind) const {
  const auto mine = parts_.each(whole);
  auto halves = own(whole);
  Arriving arriving(mine.size());
  for_each_here([&](int64_t part) {
    const auto at = static_cast<size_t>(part);
    if (partner(part) == part) return;
    exchange(part, rows_of(mine[at], second(part)), spec_of(whole), second(partner(part)), kind, arriving);
  });
  for_each_here([&](int64_t part) {
    const auto at = static_cast<size_t>(part);
    if (arriving[at]) halves[at][1] = arriving[at]->finish();
  });
  return halves;
}

QueryRows::Halves QueryRows::own(const Tensor& whole) const {
  const auto mine = parts_.each(whole);
  Halves halves(mine.size());
  for_each_here([&](int64_t part) {
    const auto at = static_cast<size_t>(part);
    halves[at][0] = rows_of(mine[at], first(part));
    if (partner(part) == part) halves[at][1] = rows_of(mine[at], second(part));
  });
  return halves;
}

void QueryRows::keep(const Halves& halves, bool own_too, std::vector<Tensor>& kept) const {
  for_each_here([&](int64_t part) {
    const auto computed = computed_by(part);
    for (size_t i = 0; i < computed.size(); ++i)
      if (computed[i].positions.length > 0 && (own_too || computed[i].owner != part))
        kept.push_back(halves[static_cast<size_t>(part)][i]);
  });
}

QueryRows::Halves QueryRows::restored(const Tensor& whole, const Tensor*& next) const {
  auto halves = whole.defined() ? own(whole) : Halves(static_cast<size_t>(parts_.count()));
  for_each_here([&](int64_t part) {
    const auto computed = computed_by(part);
    for (size_t i = 0; i < computed.size(); ++i)
      if (computed[i].positions.length > 0 && (!whole.defined() || computed[i].owner != part))
        halves[static_cast<size_t>(part)][i] = *next++;
  });
  return halves;
}

Tensor QueryRows::collect(const Halves& halves, const TensorSpec* spec, uint64_t kind) const {
  Arriving arriving(halves.size());
  for_each_here(
      [&](int64_t part) { exchange(part, halves[static_cast<size_t>(part)][1], *spec, second(part), kind, arriving); });
  std::vector<Tensor> whole(halves.size());
  for_each_here([&](int64_t part) {
    const auto at = static_cast<size_t>(part);
    const auto mine = partner(part) == part ? halves[at][1] : arriving[at] ? arriving[at]->finish() : Tensor();
    whole[at] = joined(halves[at][0], mine);
  });
  return parts_.joined(whole, spec);
}

}  // namespace lockstep::trainer
