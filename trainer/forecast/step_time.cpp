#include "trainer/forecast/step_time.h"

#include "trainer/forecast/communication.h"
#include "trainer/forecast/computing.h"

namespace lockstep::trainer::forecast {
namespace {

/// Stages are whole layers, the embedding and the head count as one each: the largest beside the mean.
double imbalance(const Workload& w, const Settings& s) {
  if (s.mesh.pp == 1) return 1;
  return static_cast<double>(largest_stage(w, s) * s.mesh.pp) / static_cast<double>(w.model.layers + 2);
}

}  // namespace

TimeForecast time_of(const Workload& w, const Settings& s, const Hardware& hardware) {
  const auto& m = w.model;
  const Communication sends(w, s, hardware);
  const auto microbatches = static_cast<double>(forecast::microbatches(w, s)), pp = static_cast<double>(s.mesh.pp);
  const double parts = imbalance(w, s) * microbatches / pp;
  TimeForecast t;
  const auto add = [&](const LayerSizes& layer, double layers) {
    t.computing += layers * parts * layer_seconds(layer, w, s, hardware);
    t.tensor += layers * parts * sends.tensor(layer);
    t.context += layers * parts * sends.context();
    t.experts += layers * parts * sends.experts(layer);
  };
  add(dense_layer(m), layers_of(m).dense);
  if (m.has_experts()) add(expert_layer(m), layers_of(m).expert);
  t.computing += parts * head_seconds(w, s, hardware);
  t.transfers = sends.transfers() * microbatches;
  const double busy = t.computing + t.tensor + t.context + t.experts + t.transfers;
  t.bubble = busy * (pp - 1) / static_cast<double>(s.stages_per_rank) / microbatches;
  t.data = sends.data(busy);
  t.optimizer = update_seconds(w, s, hardware);
  return t;
}

double utilization(const Workload& workload, const Settings& settings, const Hardware& hardware, double step_seconds) {
  const double operations = workload.model.operations_per_token(workload.seq_len) *
                            static_cast<double>(workload.global_batch * workload.seq_len);
  return operations / step_seconds / static_cast<double>(settings.mesh.ranks()) / hardware.operations_per_second;
}

}  // namespace lockstep::trainer::forecast
