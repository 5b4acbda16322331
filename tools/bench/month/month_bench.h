#pragma once
#include <cstdint>
#include <functional>
#include <string>

namespace lockstep::bench {

/// What a month comes to in which ranks are lost.
struct MonthResult {
  double effective = 0;  ///< time of the steps that count, as a share of all
  int64_t kills = 0, restarts = 0, steps = 0, lost_steps = 0;
  double days = 0;                                    ///< of the virtual clock
  double detection_seconds = 0, restart_seconds = 0;  ///< the mean of a kill
  double save_seconds = 0;                            ///< that a save was waited for, the mean
  bool digest_equal = false;                          ///< the last state is that of a run that was let alone
};

/// Two ranks train for so long that `kills` of them are lost, at FailureTimes' rate; 233 are a month. Every loss is a
/// real kill of a process under `lockstep launch --restarts`, at the step where the virtual clock says, and every step
/// and restart is really made. On the clock a step takes ten seconds, a save what the steps waited for it, a loss what
/// it took from the kill until the next step was done. `report` hears of each loss.
MonthResult measure_month(int64_t kills, const std::function<void(const std::string&)>& report);

}  // namespace lockstep::bench
