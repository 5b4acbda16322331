#pragma once
#include <string>
#include <vector>

#include "trainer/mutation/setup.h"
#include "trainer/mutation/site.h"
#include "trainer/mutation/spoil.h"

namespace lockstep::trainer {

/// What a report has to name. Empty: it does not matter.
struct Expectation {
  std::string kind = {};  ///< as Blame::kind
  std::string id = {};    ///< site_key(): microbatch, phase, module, op and occurrence
  std::string rule = {}, collective = {}, axis = {}, module = {};
  std::vector<int> group = {}, ranks = {};
  std::string value = {};     ///< that its text has to hold: of a number, a parameter
  bool is_transient = false;  ///< it has to say that the fault does not come back
};

/// One fault in one place of a run.
struct Mutant {
  int number = 0;
  std::string of_class = {};  ///< "M4"
  Setup setup = {};
  Site site = {};
  Change change = Change::kTimes;
  double amount = 1;
  std::vector<int> ranks = {};  ///< where; empty: on all
  int64_t step = 0;             ///< the only one that has it; 0: each does. kState: the one that it comes before
  bool is_transient = false;    ///< when the step is run again, the fault is gone
  bool resumes = false;         ///< the run begins behind a checkpoint of step 1
  Expectation expected = {};

  /// "M4 times 2 on rank 1 of dp_shard=2,tp=2: reduce_scatter on dp_shard in ...".
  std::string text() const;
};

}  // namespace lockstep::trainer
