#pragma once
#include "runtime/local_calls/decomposition.h"
#include "runtime/local_calls/local_calls.h"

namespace lockstep {

/// Whether the rows of the result are products of the rows of operand 0: x W^T, or x W with a W of two dimensions.
bool has_rows_apart(const Plan& plan);

/// The shards of a product whose operand 0 arrives in rows; undefined: it does not, or not so that rows stay rows. Of
/// each plan's first under canonical numerics the bits are compared with those of the whole product; throws
/// InternalError where they differ.
at::Tensor product_of_arriving_rows(LocalCalls& calls);

/// The shards of a product with unfinished sums, put off; null: it is none. The first that is scattered is compared in
/// the same way.
std::shared_ptr<ShardSet> product_put_off(const LocalCalls& calls);

}  // namespace lockstep
