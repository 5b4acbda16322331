#pragma once

/// What inconsistency_test.cpp expects of `lockstep verify`, as golden_report.h prints it. Canonical bits are the same
/// on every machine: so are the numbers here.
namespace lockstep {

/// Rank 1's gradients of weights are a thousandth too large.
inline constexpr const char* kWrongGradientReport = R"~(
exit code 3
--- standard output
2 steps and one on a batch of its own bit by bit beside one device; worst relative difference per mesh
mesh                              verdict       loss  gradients  parameters  worst op                 comm/step     time
dp_shard=2                        DIFFERS    0.0e+00    5.9e-04     4.0e-03  mesh::weight_gradient      0.53 MB    TIMEx

INCONSISTENT  mesh dp_shard=2, step 1: gradient of layers.0.up.weight[100, 41] = 0.0007012519636, one device: 0.0007008388638 (relative 5.9e-04; 16384 of 16384 elements wrong: everywhere)
  op       step 1, microbatch 0, backward, output, mesh::weight_gradient #0
  rule     matmul "...n,...k->nk"
  axis     dp_shard, ranks 0-1; wrong on ranks 0-1
  layouts  [dp_shard=S(0)], [dp_shard=S(0)] -> [dp_shard=P(sum:8/1)]
  worst    result of mesh::weight_gradient[116, 32] = -0.01632092521, one device: -0.01631294191 (relative 4.9e-04; 16384 of 16384 elements wrong: everywhere)
  before   33 ops with what they took, 12 moves between layouts, and 1 value between ops, agree
  again    lockstep replay --case FOLDER/out/case-1.h5

dp_shard=2: what a rank sends in a step
axis          collective       per step      MiB sent   nodes    native   ratio
dp_shard      all_gather              6         0.315       -     0.315   1.00x
dp_shard      all_reduce              5         0.000    1.00     0.000   2.33x
dp_shard      reduce_scatter          4         0.189    1.00     0.189   1.00x
all                                             0.505             0.505   1.00x

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
      "domain": "native",
      "numerics": "canonical",
      "loss_max_relative": 0.0,
      "grad_max_relative": 0.0005910334125304581,
      "parameter_max_relative": 0.004021114467157719,
      "worst_error_over_bound": null,
      "differing_bits": 2013782,
      "threads": 1,
      "worst_op": "mesh::weight_gradient",
      "ops": null,
      "losses": LOSSES,
      "findings": [
        {
          "step": 1,
          "kind": "op",
          "op": "mesh::weight_gradient",
          "phase": "backward",
          "module": "output",
          "id": "step 1, microbatch 0, backward, output, mesh::weight_gradient #0",
          "collective": "",
          "axis": "dp_shard",
          "group": [
            0,
            1
          ],
          "rank": 0,
          "ranks": [
            0,
            1
          ],
          "rule": "matmul \"...n,...k->nk\"",
          "layouts": "[dp_shard=S(0)], [dp_shard=S(0)] -> [dp_shard=P(sum:8/1)]",
          "worst": "result of mesh::weight_gradient[116, 32] = -0.01632092521, one device: -0.01631294191 (relative 4.9e-04; 16384 of 16384 elements wrong: everywhere)",
          "pattern": "everywhere",
          "before": "33 ops with what they took, 12 moves between layouts, and 1 value between ops, agree",
          "limits": "",
          "transient": false,
          "difference": "gradient of layers.0.up.weight[100, 41] = 0.0007012519636, one device: 0.0007008388638 (relative 5.9e-04; 16384 of 16384 elements wrong: everywhere)",
          "case": "FOLDER/out/case-1.h5",
          "next": "lockstep replay --case FOLDER/out/case-1.h5"
        }
      ],
      "bytes_per_step": 529404.0,
      "coverage": null,
      "native_bytes_per_step": 529260.0,
      "collectives": [
        {
          "axis": "dp_shard",
          "collective": "all_gather",
          "count": 6,
          "bytes": 330752.0,
          "nodes": 0.0,
          "native_count": 6,
          "native_bytes": 330752.0,
          "ratio": 1.0
        },
        {
          "axis": "dp_shard",
          "collective": "all_reduce",
          "count": 5,
          "bytes": 252.0,
          "nodes": 1.0,
          "native_count": 4,
          "native_bytes": 108.0,
          "ratio": 2.3333333333333335
        },
        {
          "axis": "dp_shard",
          "collective": "reduce_scatter",
          "count": 4,
          "bytes": 198400.0,
          "nodes": 1.0,
          "native_count": 4,
          "native_bytes": 198400.0,
          "ratio": 1.0
        }
      ],
      "gathered": []
    }
  ],
  "coverage": COVERAGE,
  "verdict": "fail"
}
--- files
out/case-1.h5
)~";

/// `lockstep replay --case` of the case that the report above names.
inline constexpr const char* kWrongGradientCase = R"~(
exit code 3
--- standard output
mesh::weight_gradient on dp_shard=2: DIFFERS from one device
  op       step 1, microbatch 0, backward, output, mesh::weight_gradient #0
  rule     matmul "...n,...k->nk"
  axis     dp_shard, ranks 0-1; wrong on ranks 0-1
  layouts  [dp_shard=S(0)], [dp_shard=S(0)] -> [dp_shard=P(sum:8/1)]
  worst    result of mesh::weight_gradient[116, 32] = -0.01632092521, one device: -0.01631294191 (relative 4.9e-04; 16384 of 16384 elements wrong: everywhere)
--- standard error
--- result.json
{
  "verdict": "differs",
  "op": "mesh::weight_gradient",
  "mesh": "dp_shard=2",
  "id": "step 1, microbatch 0, backward, output, mesh::weight_gradient #0",
  "finding": "  op       step 1, microbatch 0, backward, output, mesh::weight_gradient #0\n  rule     matmul \"...n,...k->nk\"\n  axis     dp_shard, ranks 0-1; wrong on ranks 0-1\n  layouts  [dp_shard=S(0)], [dp_shard=S(0)] -> [dp_shard=P(sum:8/1)]\n  worst    result of mesh::weight_gradient[116, 32] = -0.01632092521, one device: -0.01631294191 (relative 4.9e-04; 16384 of 16384 elements wrong: everywhere)"
}
--- files
out/case-1.h5
)~";

}  // namespace lockstep
