#pragma once

/// What inconsistency_test.cpp expects of `lockstep train`, as golden_report.h prints it. Canonical bits are the same
/// on every machine: so are the numbers here.
namespace lockstep {

/// Rank 1's parameters are a thousandth too large after step 2 of a recorded run with a checkpoint of every step.
inline constexpr const char* kWrongUpdateReport = R"~(
exit code 3
--- standard output
step 1/4  loss 5.5421  grad_norm 0.4364  lr 8.0e-04  RATE tokens/s checked  MEMORY MiB peak  TIME
DIFFERS   2 steps on dp_shard=2 beside one device, bit by bit: 421378 bits differ in loss, gradients, norm, parameters and optimizer state
speed     RATE tokens/s on the mesh alone, RATE with one device beside it
loss      5.5421 after step 1; unigram entropy of the text 2.3690
state     76286c4062a6758970745a1fd5c5fad6
saved     FOLDER/out/checkpoint/step-1
INCONSISTENT  step 2, mesh dp_shard=2: parameter of tok_embeddings.weight[234, 20] = -0.2025022358, one device: -0.2022999227 (relative 1.0e-03; 8192 of 16384 elements wrong, on rank 1: times 1.001, in [128:256, 0:64])
  op       step 2, microbatch 0, optimizer, tok_embeddings.weight, mesh::adamw #0
  rule     optimizer "...,...,...,...->..."
  axis     dp_shard, ranks 0-1; wrong on rank 1
  layouts  [dp_shard=S(0)], [dp_shard=S(0)], [dp_shard=S(0)], [dp_shard=S(0)] -> [dp_shard=S(0)]
  worst    result 0 of mesh::adamw[234, 20] = -0.2025022358, one device: -0.2022999227 (relative 1.0e-03; 8192 of 16384 elements wrong, on rank 1: times 1.001, in [128:256, 0:64])
  before   81 ops with what they took, 55 moves between layouts, and 15 values between ops, agree
  again    lockstep replay --case FOLDER/out/case-1.h5
  resume   from FOLDER/out/checkpoint/step-1 (--checkpoint.load_step 1): the last checkpoint up to step 1, which was verified last
--- standard error
test: mlp debugmodel on dp_shard=2, simulated in one process
compute float32, seed 0, 4 steps of 8 x 16 tokens (local batch 4, accumulated 1 times)
--- result.json
{
  "steps": [
    {
      "step": 1,
      "loss": 5.542146798223257,
      "grad_norm": 0.43638621642656245,
      "tokens_per_second": RATE,
      "checked_tokens_per_second": RATE
    }
  ],
  "state_digest": "76286c4062a6758970745a1fd5c5fad6",
  "findings": [
    "INCONSISTENT  step 2, mesh dp_shard=2: parameter of tok_embeddings.weight[234, 20] = -0.2025022358, one device: -0.2022999227 (relative 1.0e-03; 8192 of 16384 elements wrong, on rank 1: times 1.001, in [128:256, 0:64])\n  op       step 2, microbatch 0, optimizer, tok_embeddings.weight, mesh::adamw #0\n  rule     optimizer \"...,...,...,...->...\"\n  axis     dp_shard, ranks 0-1; wrong on rank 1\n  layouts  [dp_shard=S(0)], [dp_shard=S(0)], [dp_shard=S(0)], [dp_shard=S(0)] -> [dp_shard=S(0)]\n  worst    result 0 of mesh::adamw[234, 20] = -0.2025022358, one device: -0.2022999227 (relative 1.0e-03; 8192 of 16384 elements wrong, on rank 1: times 1.001, in [128:256, 0:64])\n  before   81 ops with what they took, 55 moves between layouts, and 15 values between ops, agree\n  again    lockstep replay --case FOLDER/out/case-1.h5\n  resume   from FOLDER/out/checkpoint/step-1 (--checkpoint.load_step 1): the last checkpoint up to step 1, which was verified last"
  ]
}
--- files
out/.lock
out/case-1.h5
out/checkpoint/.lock
out/checkpoint/step-1
out/job.toml
out/metrics.jsonl
traces/rank0-step1.h5
traces/rank0-step2.h5
traces/rank0.index
traces/rank1-step1.h5
traces/rank1-step2.h5
traces/rank1.index
)~";

/// The same beside one device.
inline constexpr const char* kNanFinding = R"~(
exit code 3
--- standard output
step 1/4  loss 5.5421  grad_norm 0.4364  lr 8.0e-04  RATE tokens/s checked  MEMORY MiB peak  TIME
DIFFERS   2 steps on dp_shard=2 beside one device, bit by bit: 0 bits differ in loss, gradients, norm, parameters and optimizer state
speed     RATE tokens/s on the mesh alone, RATE with one device beside it
loss      5.5421 after step 1; unigram entropy of the text 2.3690
state     ec168226cc0c6fb6705dc0124f0ce3b3
saved     FOLDER/out/checkpoint/step-1
INCONSISTENT  step 2, mesh dp_shard=2: step 2: loss nan and gradient norm nan are not both finite; parameters are unchanged; one device: loss 5.531514503, gradient norm 0.4440007443
  op       step 2, microbatch 0, forward, layers.0, gelu #0
  rule     pointwise "...->..."
  axis     dp_shard, ranks 0-1; wrong on rank 1
  layouts  [dp_shard=S(0)] -> [dp_shard=S(0)]
  worst    result of gelu[4, 0, 0] = nan, one device: -0.003833016148 (relative inf; 4096 of 32768 elements wrong, on rank 1: NaN or infinite, in [4:5, 0:16, 0:256])
  before   5 ops with what they took, 6 moves between layouts, and 1 value between ops, agree
  again    lockstep replay --case FOLDER/out/case-1.h5
  resume   from FOLDER/out/checkpoint/step-1 (--checkpoint.load_step 1): the last checkpoint up to step 1, which was verified last
--- standard error
test: mlp debugmodel on dp_shard=2, simulated in one process
compute float32, seed 0, 4 steps of 8 x 16 tokens (local batch 4, accumulated 1 times)
--- result.json
{
  "steps": [
    {
      "step": 1,
      "loss": 5.542146798223257,
      "grad_norm": 0.43638621642656245,
      "tokens_per_second": RATE,
      "checked_tokens_per_second": RATE
    }
  ],
  "state_digest": "ec168226cc0c6fb6705dc0124f0ce3b3",
  "findings": [
    "INCONSISTENT  step 2, mesh dp_shard=2: step 2: loss nan and gradient norm nan are not both finite; parameters are unchanged; one device: loss 5.531514503, gradient norm 0.4440007443\n  op       step 2, microbatch 0, forward, layers.0, gelu #0\n  rule     pointwise \"...->...\"\n  axis     dp_shard, ranks 0-1; wrong on rank 1\n  layouts  [dp_shard=S(0)] -> [dp_shard=S(0)]\n  worst    result of gelu[4, 0, 0] = nan, one device: -0.003833016148 (relative inf; 4096 of 32768 elements wrong, on rank 1: NaN or infinite, in [4:5, 0:16, 0:256])\n  before   5 ops with what they took, 6 moves between layouts, and 1 value between ops, agree\n  again    lockstep replay --case FOLDER/out/case-1.h5\n  resume   from FOLDER/out/checkpoint/step-1 (--checkpoint.load_step 1): the last checkpoint up to step 1, which was verified last"
  ]
}
--- files
out/.lock
out/case-1.h5
out/checkpoint/.lock
out/checkpoint/step-1
out/job.toml
out/metrics.jsonl
)~";

/// Rank 1's first sample is NaN behind gelu in step 2.
inline constexpr const char* kNanReport = R"~(
exit code 3
--- standard output
step 1/4  loss 5.5421  grad_norm 0.4364  lr 8.0e-04  RATE tokens/s  MEMORY MiB peak  TIME
--- standard error
test: mlp debugmodel on dp_shard=2, simulated in one process
compute float32, seed 0, 4 steps of 8 x 16 tokens (local batch 4, accumulated 1 times)
lockstep: step 2: loss nan and gradient norm nan are not both finite; parameters are unchanged; the first op with a NaN or an infinity is step 2, microbatch 0, forward, layers.0, gelu #0; resume from FOLDER/out/checkpoint/step-1 (--checkpoint.load_step 1): the last checkpoint; no step was verified
--- result.json
none
--- files
out/.lock
out/checkpoint/.lock
out/checkpoint/step-1
out/job.toml
out/metrics.jsonl
)~";

}  // namespace lockstep
