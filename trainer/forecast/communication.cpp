#include "trainer/forecast/communication.h"

#include <algorithm>
#include <cmath>

namespace lockstep::trainer::forecast {
namespace {

constexpr double kFloat = 4;

double share_elsewhere(int64_t ranks) { return 1 - 1 / static_cast<double>(ranks); }

}  // namespace

/// Groups tile hosts.
bool Communication::is_inside(const Group& group) const {
  const int64_t spread = group.apart * group.size;
  return spread <= h_.ranks_per_host && h_.ranks_per_host % spread == 0;
}

/// Bytes a second of a rank: as many network ports carry it as there are members on a host.
double Communication::link(const Group& group) const {
  const double inside = h_.host_bytes_per_second * h_.links;
  if (is_inside(group)) return inside;
  const auto members = static_cast<double>(std::max<int64_t>(1, h_.ranks_per_host / group.apart));
  return std::min(inside, h_.network_bytes_per_second * h_.links * members);
}

double Communication::latency(const Group& group) const {
  const double doublings = std::ceil(std::log2(static_cast<double>(group.size)));
  return doublings * (is_inside(group) ? h_.host_latency_seconds : h_.network_latency_seconds);
}

double Communication::collective(double bytes, const Group& group) const {
  return group.size == 1 ? 0 : bytes * share_elsewhere(group.size) / link(group) + latency(group);
}

/// Two around attention and two around a feed-forward, forward and backward, and those that run again. Experts that
/// are divided over tp need none; where tp cuts each of them, their rows are gathered.
double Communication::tensor(const LayerSizes& layer) const {
  const Group group{1, s_.mesh.tp};
  const double bytes = tokens_ * static_cast<double>(m_.width) * element_;
  const auto pair = [&](double in, double out) {
    return collective(in * bytes, group) + collective(out * bytes, group);
  };
  double seconds = pair(1, 1);
  if (layer.rows <= 0 || m_.experts.shared_hidden > 0) seconds += pair(1, 1);
  if (layer.rows > 0 && cuts_matrices_of_experts(s_.mesh)) seconds += pair(layer.rows, layer.rows);
  return seconds * (runs_again() ? 3 : 2);
}

/// Keys and values are gathered, once more where the layer runs again, and their gradients reduced.
double Communication::context() const {
  const auto elements = static_cast<double>(m_.attention.keys_and_values) / static_cast<double>(s_.mesh.tp);
  const double whole = elements * static_cast<double>(s_.local_batch * w_.seq_len) * element_;
  return (runs_again() ? 3 : 2) * collective(whole, {s_.mesh.tp, s_.mesh.cp});
}

/// Each pair of ranks has a path of its own, and each rank a port, so that bytes inside of hosts go beside those
/// between them. Before the rows goes which there are.
double Communication::all_to_all(double bytes, const Group& group) const {
  const auto all = static_cast<double>(group.size);
  const auto here = static_cast<double>(std::min(group.size, std::max<int64_t>(1, h_.ranks_per_host / group.apart)));
  const double inside = bytes * (here - 1) / all / (h_.host_bytes_per_second * h_.links);
  const double outside = bytes * (all - here) / all / (h_.network_bytes_per_second * h_.links);
  return std::max(inside, outside) + 2 * latency(group);
}

/// To experts and back, forward and backward, over one axis of those that divide experts after the other.
double Communication::experts(const LayerSizes& layer) const {
  if (s_.mesh.ep == 1 || layer.rows <= 0) return 0;
  const auto tp = static_cast<double>(s_.mesh.tp);
  const double bytes = layer.rows * tokens_ / tp * static_cast<double>(m_.width) * element_;
  double seconds = 0;
  for (const auto name : expert_axes(s_.mesh)) {
    const bool is_tensor = name == axis::kTensor, is_context = name == axis::kContext;
    const Group group{is_tensor ? 1 : s_.mesh.tp * (is_context ? 1 : s_.mesh.cp), is_tensor ? s_.mesh.tp
                                                                                  : is_context
                                                                                      ? s_.mesh.cp
                                                                                      : shard_part_of_experts(s_.mesh)};
    seconds += all_to_all(bytes, group);
  }
  return (runs_again() ? 6 : 4) * seconds;
}

double Communication::transfers() const {
  if (s_.mesh.pp == 1) return 0;
  const double bytes = tokens_ * static_cast<double>(m_.width) * element_ / static_cast<double>(s_.mesh.tp);
  const Group stages{s_.mesh.ranks() / s_.mesh.pp, s_.mesh.pp}, two{stages.apart, 2};
  return 2 * static_cast<double>(s_.stages_per_rank) * (bytes / link(stages) + latency(two));
}

double Communication::data(double busy) const {
  const bool once = s_.mesh.pp > 1;  // with pp parameters are gathered once a step, and stay
  const auto pp = static_cast<double>(s_.mesh.pp), tp = static_cast<double>(s_.mesh.tp);
  const double steps = once ? 1 : static_cast<double>(microbatches(w_, s_)), gathers = once ? 1 : 2 * steps;
  auto stage = rank_parameters(m_, layers_of(m_), s_);
  stage.everywhere += m_.outer_parameters() / tp;
  const auto layer = rank_parameters(largest_layer(m_), s_);
  double seconds = 0, alone = 0;
  const auto add = [&](double of_stage, double of_layer, int64_t layers, const Group& group) {
    if (group.size == 1 || of_layer <= 0) return;
    seconds += collective(of_stage / pp * (gathers * element_ + steps * kFloat), group) +
               ((gathers + steps) * static_cast<double>(layers) / pp - 1) * latency(group);
    alone += collective(of_layer * (element_ + kFloat), group) + latency(group);
  };
  add(stage.everywhere, layer.everywhere, m_.layers, {s_.mesh.tp, s_.sharding()});
  add(stage.routed, layer.routed, m_.experts.layers, {s_.expert_degree(), s_.expert_sharding()});
  const Group replicas{s_.mesh.tp * s_.sharding(), s_.mesh.dp_replicate};
  const double shares = m_.parameters() / pp / tp / static_cast<double>(s_.sharding());
  seconds += collective(2 * shares * kFloat, replicas);
  return std::max(0.0, seconds - busy) + alone;
}

}  // namespace lockstep::trainer::forecast
