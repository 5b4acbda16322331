#include "trainer/forecast/computing.h"

#include <algorithm>

namespace lockstep::trainer::forecast {
namespace {

constexpr double kFloat = 4;
// Elements that norms, gates, rotations and sums of residuals read and write, of a token and a layer, for each of its
// width and of its hidden size.
constexpr double kForwardOfWidth = 14, kForwardOfHidden = 3, kBackwardOfWidth = 16, kBackwardOfHidden = 5;
/// Of each row that goes to an expert, for each of its width: read and written, and what comes back is read and added.
constexpr double kOfRow = 4;
/// How often cross-entropy and its gradient read or write a logit.
constexpr double kOfLogit = 5;
/// Bytes of a parameter that AdamW, the norm of gradients and conversions read and write.
constexpr double kBytesOfParameter = 40;

/// Ranks of a host beyond those that it runs at full speed take turns.
double turns(int64_t ranks, const Hardware& h) {
  if (h.ranks_at_full_speed <= 0) return 1;
  return std::max(1.0, static_cast<double>(std::min(ranks, h.ranks_per_host)) / h.ranks_at_full_speed);
}

/// How fast a rank does what it does to its tokens.
class Rank {
 public:
  Rank(const Workload& workload, const Settings& settings, const Hardware& hardware)
      : w_(workload),
        s_(settings),
        h_(hardware),
        tokens_(tokens_of(workload, settings) / static_cast<double>(settings.mesh.tp)),
        element_(static_cast<double>(settings.element_bytes)),
        turns_(turns(settings.mesh.ranks(), hardware)) {}

  double computed(double operations, double share) const {
    return turns_ * operations * tokens_ / (h_.operations_per_second * share);
  }
  /// Elements of each token.
  double moved(double elements) const {
    return turns_ * elements * element_ * tokens_ / (h_.memory_bytes_per_second * h_.elements);
  }
  double streamed(double bytes) const { return turns_ * bytes / (h_.memory_bytes_per_second * h_.optimizer); }

  /// Linear maps, forward. A product of few tokens takes as long as its weight takes to be read.
  double products(const LayerSizes& layer) const {
    const auto whole = rank_parameters(layer, s_);
    const auto of = [&](double met, double read) {
      return std::max(computed(2 * met, h_.products), streamed(element_ * read));
    };
    return of(layer.everywhere, whole.everywhere) + of(layer.chosen, whole.routed);
  }

  double attention() const {
    return computed(static_cast<double>(w_.seq_len * w_.model.attention.products), h_.attention);
  }

  double elements(const LayerSizes& layer, double of_width, double of_hidden) const {
    return moved(static_cast<double>(w_.model.width) * (of_width + kOfRow * layer.rows) + of_hidden * layer.hidden);
  }

  /// What is run again, `products` and `elements` being those of forward.
  double again(const LayerSizes& layer, double products, double elements) const {
    switch (s_.recompute) {
      case Recompute::kNone:
        return 0;
      case Recompute::kLinear:
        return elements;
      case Recompute::kOp:  // the second and the fourth map of a layer
        return elements + products * layer.out_parameters / layer.met();
      default:
        return elements + products + attention();
    }
  }

  /// Beside products: conversions of shares, and gradients that are added to those of microbatches before.
  double weights(double parameters, int64_t shares) const {
    const double conversion = element_ < kFloat ? kFloat + element_ : 0;
    const double conversions = conversion * (s_.recompute == Recompute::kNone ? 1 : 2);
    const auto sharding = static_cast<double>(shares);
    // With pp gradients are added up before they are reduced, without it after that.
    const double accumulation = (2 * kFloat + element_) / (s_.mesh.pp > 1 ? 1 : sharding);
    return streamed(parameters * (conversions / sharding + (microbatches(w_, s_) > 1 ? accumulation : 0)));
  }

 private:
  const Workload& w_;
  const Settings& s_;
  const Hardware& h_;
  double tokens_, element_, turns_;
};

}  // namespace

double layer_seconds(const LayerSizes& layer, const Workload& workload, const Settings& settings,
                     const Hardware& hardware) {
  const Rank rank(workload, settings, hardware);
  const double products = rank.products(layer), elements = rank.elements(layer, kForwardOfWidth, kForwardOfHidden);
  const auto whole = rank_parameters(layer, settings);
  return 3 * products + 3.5 * rank.attention() + elements + rank.elements(layer, kBackwardOfWidth, kBackwardOfHidden) +
         rank.again(layer, products, elements) + rank.weights(whole.everywhere, settings.sharding()) +
         rank.weights(whole.routed, settings.expert_sharding());
}

double head_seconds(const Workload& workload, const Settings& settings, const Hardware& hardware) {
  const Rank rank(workload, settings, hardware);
  return rank.computed(6 * workload.model.table_parameters(), hardware.products) +
         rank.moved(kOfLogit * static_cast<double>(workload.model.vocabulary));
}

double update_seconds(const Workload& workload, const Settings& settings, const Hardware& hardware) {
  const double shares = static_cast<double>(settings.mesh.pp * settings.mesh.tp * settings.sharding());
  return Rank(workload, settings, hardware).streamed(workload.model.parameters() / shares * kBytesOfParameter);
}

}  // namespace lockstep::trainer::forecast
