#pragma once

/// What inconsistency_test.cpp expects of `lockstep verify`, as golden_report.h prints it, under native numerics: to
/// three digits.
namespace lockstep {

/// Gradients that are wrong as in wrong_gradient.h, beside one device in float64, numbers to three digits.
inline constexpr const char* kNativeReport = R"~(
exit code 3
--- standard output
2 steps and one on a batch of its own in float64 beside one device; worst relative difference per mesh
mesh                              verdict       loss  gradients  parameters  worst op                 comm/step     time
dp_shard=2                        DIFFERS    ROUNDING    ROUNDING     0.001  mesh::adamw                0.53 MB    TIMEx
    op by op: 13 of 71 ops and 0 of 44 moves
    the run that trains: at most WITHIN of what its roundings may do

INCONSISTENT  mesh dp_shard=2, step 2: parameter of tok_embeddings.weight[234, 20] = -0.203, one device: -0.202 (relative 0.001; 8192 of 16384 elements wrong, on rank 1: times 1, in [128:256, 0:64])
  op       step 2, microbatch 0, optimizer, tok_embeddings.weight, mesh::adamw #0
  rule     optimizer "...,...,...,...->..."
  axis     dp_shard, ranks 0-1; wrong on rank 1
  layouts  [dp_shard=S(0)], [dp_shard=S(0)], [dp_shard=S(0)], [dp_shard=S(0)] -> [dp_shard=S(0)]
  worst    result 0 of mesh::adamw[234, 20] = -0.203, one device: -0.202 (relative 0.001; 8192 of 16384 elements wrong, on rank 1: times 1, in [128:256, 0:64])
  before   60 ops with what they took, 44 moves between layouts, and 4 values between ops, agree
  again    lockstep replay --case FOLDER/out/case-1.h5

no mesh came to its last step: what this suite reaches is not known
--- standard error
test: mlp debugmodel on dp_shard=2, simulated in one process
compute float32, seed 0, 4 steps of 8 x 16 tokens (local batch 4, accumulated 1 times)
--- result.json
{
  "job": "test",
  "seed": 0,
  "processes": 1,
  "planned": 1,
  "finished": true,
  "meshes": [
    {
      "mesh": "dp_shard=2",
      "verdict": "fail",
      "domain": "float64",
      "numerics": "native",
      "loss_max_relative": ROUNDING,
      "grad_max_relative": ROUNDING,
      "parameter_max_relative": 0.001,
      "worst_error_over_bound": 1e+06,
      "differing_bits": null,
      "threads": 1,
      "worst_op": "mesh::adamw",
      "ops": {
        "seen": 71,
        "compared": 13,
        "moves_seen": 44,
        "moves_compared": 0,
        "without_bound": 0,
        "worst_error_over_bound": WITHIN
      },
      "losses": LOSSES,
      "findings": [
        {
          "step": 2,
          "kind": "op",
          "op": "mesh::adamw",
          "phase": "optimizer",
          "module": "tok_embeddings.weight",
          "id": "step 2, microbatch 0, optimizer, tok_embeddings.weight, mesh::adamw #0",
          "collective": "",
          "axis": "dp_shard",
          "group": [
            0,
            1
          ],
          "rank": 1,
          "ranks": [
            1
          ],
          "rule": "optimizer \"...,...,...,...->...\"",
          "layouts": "[dp_shard=S(0)], [dp_shard=S(0)], [dp_shard=S(0)], [dp_shard=S(0)] -> [dp_shard=S(0)]",
          "worst": "result 0 of mesh::adamw[234, 20] = -0.203, one device: -0.202 (relative 0.001; 8192 of 16384 elements wrong, on rank 1: times 1, in [128:256, 0:64])",
          "pattern": "times 1, in [128:256, 0:64]",
          "before": "60 ops with what they took, 44 moves between layouts, and 4 values between ops, agree",
          "limits": "",
          "transient": false,
          "difference": "parameter of tok_embeddings.weight[234, 20] = -0.203, one device: -0.202 (relative 0.001; 8192 of 16384 elements wrong, on rank 1: times 1, in [128:256, 0:64])",
          "case": "FOLDER/out/case-1.h5",
          "next": "lockstep replay --case FOLDER/out/case-1.h5"
        }
      ],
      "bytes_per_step": 5.29e+05,
      "coverage": null
    }
  ],
  "coverage": COVERAGE,
  "verdict": "fail"
}
--- files
out/case-1.h5
)~";

}  // namespace lockstep
