#pragma once
#include "trainer/data/dataset.h"
#include "trainer/mutation/mutant.h"

namespace lockstep::trainer {

/// The batch that a faulty loop gives: rows in another order, of the step before, lost, one token that is another; of
/// tokens, labels or both ("rows"). `is_now`: otherwise it is right, and remembered.
TokenBatch wrong_batch(const Mutant& mutant, bool is_now, TokenBatch right, Memory& memory, int64_t& changes);

}  // namespace lockstep::trainer
