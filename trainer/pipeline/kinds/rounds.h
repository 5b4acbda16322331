#pragma once
#include "trainer/pipeline/kinds/schedule_kinds.h"

/// The schedules whose stages lie in loops, stage s on rank s % ranks. A rank goes through its stages in rounds: some
/// microbatches of its first stage, the same of its second, and so on, then the next microbatches; backwards from its
/// last stage on. The schedules differ in how many forwards come before the first backward, and in when the gradients
/// of weights are computed. With r for the rank, p ranks, v stages per rank and m microbatches:
///
///   GPipe            all v m forwards first        Huang et al., "GPipe", NeurIPS 2019
///   1F1B             p - 1 - r                     Narayanan et al., "Memory-Efficient Pipeline-Parallel DNN
///                                                  Training", ICML 2021 (PipeDream-Flush)
///   Interleaved1F1B  2 (p - 1 - r) + (v - 1) n     Narayanan et al., "Efficient Large-Scale Language Model Training on
///                                                  GPU Clusters Using Megatron-LM", SC 2021, section 2.2
///   InterleavedZeroBubble  p - 1 - r + (v - 1) n,  Qi et al., "Zero Bubble Pipeline Parallelism", ICLR 2024
///                    and r weight gradients wait
///   ZBH1             that with v = 1               the same, section 2
///
/// n = m / max(1, floor(m / p)) microbatches are a round; where v > 1 that has to be a whole number. The lists of
/// actions are those of PyTorch 2.11.
namespace lockstep::pipeline {

// REQUIRES, of all: sizes of at least 1; of the first two and ZBH1 one stage per rank.
Schedule gpipe(PipelineSize size);
Schedule one_forward_one_backward(PipelineSize size);
/// BadInput if n is no whole number and a rank has several stages.
Schedule interleaved(PipelineSize size);
/// ZB-H1: on every rank p activations are held at most, as on the first of 1F1B.
Schedule zero_bubble_h1(PipelineSize size);
/// BadInput as interleaved().
Schedule interleaved_zero_bubble(PipelineSize size);

}  // namespace lockstep::pipeline
