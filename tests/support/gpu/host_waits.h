#pragma once
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

namespace lockstep::testing {

/// How often the host would have waited for a GPU's work, by the op it waited in. The pretended GPU counts; nothing
/// does on another.
class HostWaits {
 public:
  static HostWaits& instance() {
    static auto* waits = new HostWaits;
    return *waits;
  }

  void add(std::string_view op) {
    const std::lock_guard lock(mutex_);
    ++counts_[std::string(op)];
  }

  /// Since the last call.
  std::map<std::string, int> take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(counts_, {});
  }

 private:
  std::mutex mutex_;
  std::map<std::string, int> counts_;
};

}  // namespace lockstep::testing
