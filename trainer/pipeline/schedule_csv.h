#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "trainer/pipeline/schedule.h"

/// Schedules as PyTorch's pipelining and torchtitan's pipeline_parallel_schedule_csv have them: a line for each rank,
/// its cells separated by commas.
///
///   cell        is
///   0F1         an action (action.h)
///   (0F5;7B2)OVERLAP_F_B   two that begin together, a forward and a whole backward
///   (empty)     nothing; PyTorch writes one where it expects a rank to wait
///   0SEND_F1, 1RECV_F1, 1SEND_B1, 0RECV_B1, 0UNSHARD, 0RESHARD, 0REDUCE_GRAD   left out, and counted: who carries a
///               schedule out adds communication of its own, from what each action needs
namespace lockstep::pipeline {

struct ScheduleFile {
  Schedule schedule;
  int64_t left_out = 0;  ///< cells of communication
};

/// Stages are on the rank whose line has them; there are as many stages and microbatches as the largest numbers say.
/// Lines end in "\n" or "\r\n"; empty ones at the end are none; blanks around cells, and double quotes, do not matter.
/// BadInput, "schedule.csv:2, cell 3: ...", for what cannot be read, and for a stage on two ranks. Whether it can be
/// carried out only check() says.
ScheduleFile parse_schedule_csv(std::string_view text, const std::string& name);

/// The same of a file. BadInput, too, where there is none.
ScheduleFile read_schedule_csv(const std::string& path);

/// Without empty cells. parse_schedule_csv() of it gives the schedule, with another name.
std::string to_csv(const Schedule& schedule);

}  // namespace lockstep::pipeline
