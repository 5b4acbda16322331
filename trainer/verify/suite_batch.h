#pragma once
#include "trainer/data/dataset.h"
#include "trainer/job/job.h"

namespace lockstep::trainer {

/// A global batch that asks more of a mesh than text does: tokens from the whole vocabulary, repeated and permuted from
/// row to row; labels that are ignored unevenly over rows and positions, of one row all. The same for the same job and
/// step.
TokenBatch suite_batch(const Job& job, int64_t vocabulary, int64_t step);

}  // namespace lockstep::trainer
