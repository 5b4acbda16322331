#pragma once
#include "runtime/planning/choose_layouts.h"

namespace lockstep {

/// The tree over a first dimension of `size` that is a batch, of a tensor with `dims` dimensions: one leaf per sample.
/// There are `batch_rows` samples; where that is not known (0) a row of three or more dimensions is a sample, and in
/// tensors of fewer dimensions rows are plain elements.
SumTree tree_over_batch(int64_t size, size_t dims, int64_t batch_rows);

/// The tree of the sum over `label` in one call.
SumTree tree_of_label(const OpSharding& sharding, int label, int64_t size);

/// How many levels of a product's tree are rounded (World::Options::rounded_levels): none unless `dtype` has 16 bits.
int64_t rounded_levels(const World& world, c10::ScalarType dtype);

/// The Partial that an axis gets that cuts the sum over `label`.
Placement ordered_partial(const LayoutQuery& input, int label, int64_t unit, int64_t depth);

/// Whether `axis` may leave an ordered sum over `label`: all ranks' cuts must fall between leaves, and of nested sums
/// only the outermost may be cut (of a batch whole samples).
bool cuts_between_leaves(const LayoutQuery& input, int axis, int label);

/// Whether all ranks' parts of the layout's ordered sum are whole leaves; true without one.
bool ends_between_leaves(const Layout& layout);

/// Why the op does not take `operand` as `axis` cuts it. REQUIRES: it is a shard there.
std::string why_not_cut(const LayoutQuery& input, size_t operand, int axis);

/// The layout of left + right as a formal sum, which keeps both sides' nodes and is reduced once: left's with the terms
/// of both. Nothing where they have to be reduced first: sums over other trees or cut otherwise, in a dtype that each
/// of them would be rounded to, more than Placement::kMostTerms, or a right side that is a formal sum itself (its terms
/// would have to be added up first).
std::optional<Layout> formal_sum(const TensorSpec& left, const TensorSpec& right);

/// The size of a label in the operands.
int64_t label_size(const LayoutQuery& input, int label);

}  // namespace lockstep
