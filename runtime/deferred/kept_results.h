#pragma once
#include <ATen/core/ivalue.h>

#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

/// Which linear maps have their results kept: none runs again where all have; of every second one, the first one
/// first, half of them do, for less memory (torchtitan's choice, but for what collectives and maxima give).
enum class KeptMaps : uint8_t { kEverySecond, kAll };

/// Results of the dearest ops of a program, kept by its first run for its second: what is recomputed then is the rest
/// (selective activation checkpointing). Of attention all are kept, of linear maps those that are said.
class KeptResults {
 public:
  explicit KeptResults(KeptMaps maps = KeptMaps::kEverySecond) : maps_(maps) {}

  /// For as long as it lives, ops of this thread are kept, or (`gives`) given instead of run.
  class Scope {
   public:
    Scope(KeptResults& results, bool gives);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    KeptResults* previous_;
  };

  /// Of the scope that is open; null: none is.
  static KeptResults* current();

  /// Whether the next call of this op is one of those. Counts it.
  bool takes(std::string_view op);
  bool gives() const { return gives_; }
  /// Whether all that was kept was given.
  bool empty() const { return kept_.empty(); }
  void keep(std::string_view op, std::span<const c10::IValue> results);
  /// What was kept of the next one. Throws BadInput if it was written since. REQUIRES: the second run is like the
  /// first.
  std::vector<c10::IValue> give(std::string_view op);

 private:
  struct Kept {
    std::string op;
    std::vector<c10::IValue> results;
    std::vector<uint32_t> versions;  ///< of the tensors
  };

  KeptMaps maps_;
  bool gives_ = false;
  int64_t linear_maps_ = 0;
  std::deque<Kept> kept_;
};

}  // namespace lockstep
