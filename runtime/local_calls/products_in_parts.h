#pragma once
#include "runtime/local_calls/decomposition.h"
#include "runtime/local_calls/local_calls.h"

namespace lockstep {

/// The shards of a product whose operand 0 arrives in rows; undefined: it does not, or not so that rows stay rows. Of
/// the first (Decomposition::compares) under canonical numerics the bits are compared with those of the whole product;
/// throws InternalError where they differ.
at::Tensor product_of_arriving_rows(LocalCalls& calls);

/// The shards of a product with unfinished sums, put off; null: it is none. The first that is scattered is compared in
/// the same way.
std::shared_ptr<ShardSet> product_put_off(const LocalCalls& calls);

}  // namespace lockstep
