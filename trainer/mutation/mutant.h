#pragma once
#include <optional>
#include <string>
#include <vector>

#include "trainer/mutation/site.h"
#include "trainer/mutation/spoil.h"

namespace lockstep::trainer {

/// What a report has to name. Empty: it does not matter.
struct Expectation {
  std::string kind = {}, op = {}, phase = {}, module = {}, collective = {}, axis = {};
};

/// One fault in one place of a run.
struct Mutant {
  int number = 0;
  std::string of_class = {};  ///< "M4"
  std::string mesh = {};      ///< "dp_shard=2,tp=2"
  int64_t microbatches = 1;
  bool recomputes = false;
  Site site = {};
  Change change = Change::kTimes;
  double amount = 1;
  std::vector<int> ranks = {};  ///< where; empty: on all
  Expectation expected = {};

  /// "M4 times 2 on rank 1: reduce_scatter on dp_shard in ...".
  std::string text() const;
};

}  // namespace lockstep::trainer
