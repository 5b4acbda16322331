#include "trainer/forecast/step_time.h"

#include <algorithm>

namespace lockstep::trainer::forecast {
namespace {

constexpr double kFloat = 4, kBFloat16 = 2;
// Elements that norms, gates, rotations and sums of residuals read and write, of a token and a layer, for each of its
// width and of its hidden size.
constexpr double kForwardOfWidth = 14, kForwardOfHidden = 3, kBackwardOfWidth = 16, kBackwardOfHidden = 5;
/// What cross-entropy and its gradient read and write of a logit, in bytes.
constexpr double kBytesOfLogit = 10;
/// Bytes of a parameter that AdamW, the norm of gradients and conversions read and write.
constexpr double kBytesOfParameter = 40, kBytesOfConversion = 6;
/// A gradient in bfloat16 is added to one in float32.
constexpr double kBytesOfAccumulation = 10;

double share_elsewhere(int64_t ranks) { return 1 - 1 / static_cast<double>(ranks); }

class Forecast {
 public:
  Forecast(const Workload& workload, const Settings& settings, const Hardware& hardware)
      : m_(workload.model), w_(workload), s_(settings), h_(hardware), tokens_(tokens_of(workload, settings)) {}

  TimeForecast time() const {
    const auto microbatches = static_cast<double>(forecast::microbatches(w_, s_)), pp = static_cast<double>(s_.mesh.pp);
    const double parts = static_cast<double>(m_.layers) / pp * imbalance() * microbatches;
    TimeForecast t;
    t.computing = parts * layer() + microbatches * head() / pp * imbalance();
    t.tensor = parts * tensor();
    t.context = parts * context();
    t.transfers = transfers() * microbatches;
    const double busy = t.computing + t.tensor + t.context + t.transfers;
    t.bubble = busy * (pp - 1) / static_cast<double>(s_.stages_per_rank) / microbatches;
    t.data = data(busy);
    t.optimizer = streamed(of_stage() / static_cast<double>(s_.sharding()) * kBytesOfParameter);
    return t;
  }

 private:
  double per_tokens(double operations, double share) const {
    return operations * tokens_ / static_cast<double>(s_.mesh.tp) / (h_.operations_per_second * share);
  }
  double moved(double bytes) const {
    return bytes * tokens_ / static_cast<double>(s_.mesh.tp) / (h_.memory_bytes_per_second * h_.elements);
  }

  double streamed(double bytes) const { return bytes / (h_.memory_bytes_per_second * h_.optimizer); }

  /// Forward and backward of a layer, and what is run again.
  double layer() const {
    const double weights = m_.layer_parameters() / static_cast<double>(s_.mesh.tp);
    // A product of few tokens takes as long as its weight takes to be read.
    const double products = std::max(per_tokens(2 * m_.layer_parameters(), h_.products), streamed(kBFloat16 * weights));
    const double attention = per_tokens(2 * static_cast<double>(w_.seq_len * m_.heads * m_.head_size), h_.attention);
    const auto width = static_cast<double>(m_.width), hidden = static_cast<double>(m_.hidden);
    const double elements = moved(kBFloat16 * (kForwardOfWidth * width + kForwardOfHidden * hidden));
    const double back = moved(kBFloat16 * (kBackwardOfWidth * width + kBackwardOfHidden * hidden));
    const double of_op = products * m_.again_with_op() / m_.layer_parameters();
    const double again[] = {0, elements, elements + of_op, elements + products + attention};
    return 3 * products + 3.5 * attention + elements + back + again[static_cast<size_t>(s_.recompute)] +
           streamed(weights * bytes_of_weight());
  }

  /// Beside products: conversions of shards, and gradients that are added to those of microbatches before.
  double bytes_of_weight() const {
    const double conversions = kBytesOfConversion * (s_.recompute == Recompute::kNone ? 1 : 2);
    // With pp gradients are added up before they are reduced, without it after that.
    const auto sharding = static_cast<double>(s_.sharding());
    const double accumulation = kBytesOfAccumulation / (s_.mesh.pp > 1 ? 1 : sharding);
    return conversions / sharding + (microbatches(w_, s_) > 1 ? accumulation : 0);
  }

  double head() const {
    return per_tokens(6 * m_.table_parameters(), h_.products) +
           moved(kBytesOfLogit * static_cast<double>(m_.vocabulary));
  }

  /// Stages are whole layers, the embedding and the head count as one each: the largest beside the mean.
  double imbalance() const {
    if (s_.mesh.pp == 1) return 1;
    return static_cast<double>(largest_stage(w_, s_) * s_.mesh.pp) / static_cast<double>(m_.layers + 2);
  }

  /// Bytes a second of a rank, in a group whose members are `apart` ranks from each other: as many network ports carry
  /// it as there are members on a host.
  double link(int64_t apart, int64_t size) const {
    const double inside = h_.host_bytes_per_second * h_.links;
    if (apart * size <= h_.ranks_per_host && h_.ranks_per_host % (apart * size) == 0) return inside;
    const auto members = static_cast<double>(std::max<int64_t>(1, h_.ranks_per_host / apart));
    return std::min(inside, h_.network_bytes_per_second * h_.links * members);
  }

  /// All-gathers and reduce-scatters of activations: four forward, four backward, and those that run again.
  double tensor() const {
    const int64_t tp = s_.mesh.tp;
    const double bytes = tokens_ * static_cast<double>(m_.width) * kBFloat16 * share_elsewhere(tp);
    return tp == 1 ? 0 : (runs_again() ? 12 : 8) * bytes / link(1, tp);
  }

  bool runs_again() const { return s_.recompute != Recompute::kNone; }

  /// Keys and values are gathered, once more where the layer runs again, and their gradients reduced.
  double context() const {
    const int64_t cp = s_.mesh.cp;
    if (cp == 1) return 0;
    const auto elements = static_cast<double>(2 * m_.key_value_heads * m_.head_size) / static_cast<double>(s_.mesh.tp);
    const double whole = elements * static_cast<double>(s_.local_batch * w_.seq_len) * kBFloat16;
    return (runs_again() ? 3 : 2) * whole * share_elsewhere(cp) / link(s_.mesh.tp, cp);
  }

  /// What a stage hands on and gets back, for each that a rank has; nothing hides it.
  double transfers() const {
    if (s_.mesh.pp == 1) return 0;
    const double bytes = tokens_ * static_cast<double>(m_.width) * kBFloat16 / static_cast<double>(s_.mesh.tp);
    const int64_t apart = s_.mesh.ranks() / s_.mesh.pp;
    return 2 * static_cast<double>(s_.stages_per_rank) * bytes / link(apart, s_.mesh.pp);
  }

  double of_stage() const { return m_.parameters() / static_cast<double>(s_.mesh.pp * s_.mesh.tp); }

  /// Gathers and reductions run beside computing, but for the first layer's and the last one's.
  double data(double busy) const {
    const int64_t sharding = s_.sharding(), replicas = s_.mesh.dp_replicate, apart = s_.mesh.tp;
    const auto microbatches = static_cast<double>(forecast::microbatches(w_, s_));
    double seconds = 0, alone = 0;
    if (sharding > 1) {
      const double per_byte = share_elsewhere(sharding) / link(apart, sharding);
      const double each =
          (s_.mesh.pp > 1 ? kBFloat16 : microbatches * 2 * kBFloat16) + (s_.mesh.pp > 1 ? 1 : microbatches) * kFloat;
      seconds += of_stage() * each * per_byte;
      alone += m_.layer_parameters() / static_cast<double>(s_.mesh.tp) * (kBFloat16 + kFloat) * per_byte;
    }
    if (replicas > 1)
      seconds += 2 * of_stage() / static_cast<double>(sharding) * kFloat * share_elsewhere(replicas) /
                 link(apart * sharding, replicas);
    return std::max(0.0, seconds - busy) + alone;
  }

  const DenseModel& m_;
  const Workload& w_;
  const Settings& s_;
  const Hardware& h_;
  double tokens_;
};

}  // namespace

TimeForecast time_of(const Workload& workload, const Settings& settings, const Hardware& hardware) {
  return Forecast(workload, settings, hardware).time();
}

double utilization(const Workload& workload, const Settings& settings, const Hardware& hardware, double step_seconds) {
  const double operations = workload.model.operations_per_token(workload.seq_len) *
                            static_cast<double>(workload.global_batch * workload.seq_len);
  return operations / step_seconds / static_cast<double>(settings.mesh.ranks()) / hardware.operations_per_second;
}

}  // namespace lockstep::trainer::forecast
