#include "runtime/tensor/spec.h"
#include "trainer/step/training_run.h"

namespace lockstep::trainer {

std::vector<Range> TrainingRun::own_rows() const {
  std::vector<Range> own;
  const auto add = [&](const BatchRows& rows) {
    const std::vector<int64_t> sizes{rows.count, job_.training.seq_len};
    const auto* spec = mesh().specs().intern(plan_->activation(sizes, "batch length"), sizes, c10::kLong);
    for (size_t i = 0; i < mesh().local_count(); ++i)
      for (const auto& run : rows.runs(spec->cut(i, 0))) own.push_back({run.rows.start + run.shift, run.rows.length});
  };
  add({.count = batching_.global_batch_size});
  for (int64_t m = 0; m < batching_.accumulation_steps; ++m) add(batching_.rows(m));
  return own;
}

}  // namespace lockstep::trainer
