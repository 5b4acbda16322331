#pragma once
#include "trainer/pipeline/kinds/schedule_kinds.h"

namespace lockstep::pipeline {

/// DualPipeV (DeepSeek-AI, https://github.com/deepseek-ai/DualPipe; a half of DualPipe, "DeepSeek-V3 Technical Report",
/// section 3.2.1): two stages per rank, placed down and up again; in the steady phase a forward of one microbatch and
/// the backward of another begin together, so that one computes while the other communicates. The list of actions is
/// that of PyTorch 2.11's ScheduleDualPipeV. BadInput with fewer microbatches than stages. REQUIRES: two stages per
/// rank.
Schedule dual_pipe_v(PipelineSize size);

}  // namespace lockstep::pipeline
