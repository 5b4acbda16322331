#include "trainer/forecast/workload.h"

namespace lockstep::trainer::forecast {

double DenseModel::layer_parameters() const {
  const int64_t attention = width * (heads + 2 * key_value_heads) * head_size + heads * head_size * width;
  return static_cast<double>(attention + 3 * width * hidden + 2 * width);
}

double DenseModel::again_with_op() const {
  const int64_t out = heads * head_size * width, down = width * hidden;
  return static_cast<double>(out + down);
}

double DenseModel::parameters() const {
  return static_cast<double>(layers) * layer_parameters() + (tied_head ? 1 : 2) * table_parameters() +
         static_cast<double>(width);
}

double DenseModel::operations_per_token(int64_t seq_len) const {
  const double multiplied =
      static_cast<double>(layers) * layer_parameters() + table_parameters() + static_cast<double>(width);
  return 6 * multiplied + 12 * static_cast<double>(layers * width * seq_len);
}

std::string_view text_of(Recompute recompute) {
  static constexpr std::string_view kTexts[] = {"none", "linear", "op", "full"};
  return kTexts[static_cast<size_t>(recompute)];
}

int64_t largest_stage(const Workload& workload, const Settings& settings) {
  if (settings.mesh.pp == 1) return workload.model.layers;
  const int64_t stages = settings.mesh.pp * settings.stages_per_rank, units = workload.model.layers + 2;
  return (units + stages - 1) / stages * settings.stages_per_rank;
}

int64_t microbatches(const Workload& workload, const Settings& settings) {
  return workload.global_batch / (settings.mesh.data_parallel() * settings.local_batch);
}

double tokens_of(const Workload& workload, const Settings& settings) {
  return static_cast<double>(settings.local_batch * workload.seq_len) / static_cast<double>(settings.mesh.cp);
}

}  // namespace lockstep::trainer::forecast
