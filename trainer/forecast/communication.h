#pragma once
#include "trainer/forecast/hardware.h"
#include "trainer/forecast/workload.h"

/// Seconds of what a rank sends: of one layer and microbatch, but for the last one, which is of a step.
namespace lockstep::trainer::forecast {

class Communication {
 public:
  /// All stay alive as long as it.
  Communication(const Workload& workload, const Settings& settings, const Hardware& hardware)
      : w_(workload),
        m_(workload.model),
        s_(settings),
        h_(hardware),
        tokens_(tokens_of(workload, settings)),
        element_(static_cast<double>(settings.element_bytes)) {}

  /// All-gathers and reduce-scatters of activations over tp.
  double tensor(const LayerSizes& layer) const;
  /// Keys and values over cp.
  double context() const;
  /// Rows to experts and back, over ep.
  double experts(const LayerSizes& layer) const;
  /// What a stage hands on and gets back, for each that a rank has; nothing hides it.
  double transfers() const;
  /// Gathers and reductions of parameters beside `busy` seconds of all else, but for a layer's, which nothing hides.
  double data(double busy) const;

 private:
  bool runs_again() const { return s_.recompute != Recompute::kNone; }
  /// Ranks of a collective, `apart` ranks from each other.
  struct Group {
    int64_t apart, size;
  };
  bool is_inside(const Group& group) const;
  double link(const Group& group) const;
  double latency(const Group& group) const;
  /// Each rank gets what all others have of `bytes`.
  double collective(double bytes, const Group& group) const;
  /// Each rank sends what it has for others of `bytes`, which it has for all alike.
  double all_to_all(double bytes, const Group& group) const;

  const Workload& w_;
  const ModelSizes& m_;
  const Settings& s_;
  const Hardware& h_;
  double tokens_, element_;
};

}  // namespace lockstep::trainer::forecast
