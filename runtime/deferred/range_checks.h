#pragma once
#include <ATen/core/Tensor.h>

#include <functional>
#include <string>
#include <vector>

namespace lockstep {

class World;

/// Whether integers that an op reads, as tokens or labels, are among 0 ... count - 1. On CPUs that is known at once. A
/// GPU would be waited for, and left without work at every such op; so what lies there is looked at where the host
/// waits anyhow: by gather(), or when many checks have gathered. Until then ops must read such values without harm.
class RangeChecks {
 public:
  /// Of the first number that is wrong, the least or the greatest.
  using Explain = std::function<std::string(int64_t wrong)>;

  explicit RangeChecks(World&) {}

  /// Throws BadInput with what `explain` says, now or in settle(); now where `count` is 0. `values` is a shard, of
  /// integers.
  void require(const at::Tensor& values, int64_t count, Explain explain);

  /// Throws for the first that fails, in the order they were asked for; none is left then.
  void settle() {
    if (!waiting_.empty()) look();
  }

  /// Of work that is given up.
  void forget() { waiting_.clear(); }

 private:
  struct Check {
    at::Tensor bounds;  ///< least and greatest, on the device
    int64_t count;
    Explain explain;
  };
  static constexpr size_t kMostWaiting = 1024;

  void look();

  std::vector<Check> waiting_;
};

}  // namespace lockstep
