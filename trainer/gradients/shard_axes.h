#pragma once
#include <c10/util/ArrayRef.h>

#include "runtime/tensor/layout.h"

namespace lockstep::trainer {

/// Whether an axis of a mesh cuts parameters and samples as fully sharded data parallelism does: dp_shard, and the
/// inner part of it that experts are divided over.
bool is_shard_axis(const Mesh& mesh, int axis);

/// Whether it cuts samples: a shard axis, or dp_replicate.
bool is_data_parallel_axis(const Mesh& mesh, int axis);

/// Which dimension such axes cut of a tensor of one dimension or more, if so many ranks cut it then: the first if it
/// has as many elements; else the second, if there is one.
inline int dim_for_ranks(c10::IntArrayRef sizes, int64_t ranks) { return sizes[0] < ranks && sizes.size() > 1 ? 1 : 0; }

/// Where a parameter's gradient is summed to and the optimizer's state of it lies: as the parameter; where replicas
/// share the work out, dp_replicate cuts it as well (ZeRO-1: Rajbhandari et al., "ZeRO", 2020).
Layout update_layout(const Layout& parameter, c10::IntArrayRef sizes, bool replicas_share);

}  // namespace lockstep::trainer
