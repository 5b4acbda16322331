#pragma once
#include "consistency/comparison.h"
#include "trainer/data/dataset.h"

namespace lockstep::trainer {

/// Compares the batch that a step was given with what the data has for it, read again: sizes, first sample, every
/// token, label and position in a document.
Comparison compare_batches(const TokenBatch& expected, const TokenBatch& given);

}  // namespace lockstep::trainer
