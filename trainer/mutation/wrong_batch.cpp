#include "trainer/mutation/wrong_batch.h"

#include <ATen/Functions.h>

namespace lockstep::trainer {
namespace {

at::Tensor rows_of(std::vector<int64_t>& values, const TokenBatch& batch) {
  return at::from_blob(values.data(), {batch.rows, batch.seq_len}, at::kLong);
}

}  // namespace

TokenBatch wrong_batch(const Mutant& mutant, bool is_now, TokenBatch right, Memory& memory, int64_t& changes) {
  const auto& what = mutant.site.tensor;
  const auto touch = [&](const char* name, std::vector<int64_t>& values) {
    if (what != name && what != "rows") return;
    const auto rows = rows_of(values, right);
    if (is_now)
      changes += spoil(mutant.change, mutant.amount, rows, {}, name, memory);
    else
      memory[name] = rows.clone();
  };
  touch("tokens", right.tokens);
  touch("labels", right.labels);
  return right;
}

}  // namespace lockstep::trainer
