#pragma once

/// What inconsistency_test.cpp expects of `lockstep verify`, as golden_report.h prints it. Canonical bits are the same
/// on every machine: so are the numbers here.
namespace lockstep {

/// Rank 1 adds up its part of every gradient without what rank 0 sent; tp=2 reduces no gradient.
inline constexpr const char* kWrongReductionReport = R"~(
exit code 3
--- standard output
2 steps and one on a batch of its own bit by bit beside one device; worst relative difference per mesh
mesh                              verdict       loss  gradients  parameters  worst op                 comm/step     time
tp=2                              agrees     0.0e+00    0.0e+00     0.0e+00  -                          0.23 MB    TIMEx
dp_shard=2                        DIFFERS    0.0e+00    5.0e-01     2.0e+00  reduce_gradients           0.53 MB    TIMEx

INCONSISTENT  mesh dp_shard=2, step 1: gradient of layers.0.up.weight[184, 42] = -0.000261096342, one device: -0.0006008142373 (relative 4.8e-01; 8192 of 16384 elements wrong, on rank 1: in [128:256, 0:64])
  move     step 1, microbatch 0, backward, output, reduce_gradients #0
  kind     reduce_scatter over dp_shard, ranks 0-1
  layouts  Float[256,64] [dp_shard=P(sum:8/1)] -> [dp_shard=S(0)]
  worst    value of reduce_gradients[159, 41] = 0.0001032675573, one device: 0.000223259296 (relative 7.4e-03; 8192 of 16384 elements wrong, on rank 1: in [128:256, 0:64])
  before   36 ops with what they took, 12 moves between layouts, and 1 value between ops, agree
  case     lockstep replay --case FOLDER/out/case-1.h5 moves it alone
  again    lockstep verify FOLDER/job.toml --optimizer.decay_1d false --meshes dp_shard=2 --verify.steps 1

tp=2: what a rank sends in a step
axis          collective       per step      MiB sent   nodes    native   ratio
tp            all_gather             12         0.094       -     0.094   1.00x
tp            all_reduce             13         0.064    1.00     0.002  41.52x
tp            reduce_scatter          8         0.062    1.00     0.094   0.67x
all                                             0.220             0.189   1.17x

dp_shard=2: what a rank sends in a step
axis          collective       per step      MiB sent   nodes    native   ratio
dp_shard      all_gather              6         0.315       -     0.315   1.00x
dp_shard      all_reduce              5         0.000    1.00     0.000   2.33x
dp_shard      reduce_scatter          4         0.189    1.00     0.189   1.00x
all                                             0.505             0.505   1.00x

these meshes came to 27 of ROWS rows of the op table and 40 of 122 candidates of theirs, 5 of 10 kinds of move,
3 of 5 collectives; not to
  rows         UNMET
  candidates   embedding 10 of 12; matmul 15 of 21; pointwise 32 of 45; reduction 11 of 23;
               row 11 of 14; view 3 of 4
  moves        P -> S by reduce_scatter; R -> P without communication; R -> S without communication;
               S -> S by all_to_all; S -> S by all_to_all, uneven shards
  collectives  all_to_all; transfer
  all names: --json
--- standard error
test: mlp debugmodel on dp_shard=2, simulated in one process
compute float32, seed 0, 4 steps of 8 x 16 tokens (local batch 4, accumulated 1 times)
--- result.json
{
  "job": "test",
  "seed": 0,
  "processes": 1,
  "planned": 2,
  "finished": true,
  "meshes": [
    {
      "mesh": "tp=2",
      "verdict": "pass",
      "domain": "native",
      "numerics": "canonical",
      "loss_max_relative": 0.0,
      "grad_max_relative": 0.0,
      "parameter_max_relative": 0.0,
      "worst_error_over_bound": 0.0,
      "differing_bits": 0,
      "threads": 1,
      "worst_op": "-",
      "ops": null,
      "losses": LOSSES,
      "findings": [],
      "bytes_per_step": 231100.0,
      "coverage": COVERAGE,
      "native_bytes_per_step": 198228.0,
      "collectives": [
        {
          "axis": "tp",
          "collective": "all_gather",
          "count": 12,
          "bytes": 98304.0,
          "nodes": 0.0,
          "native_count": 12,
          "native_bytes": 98304.0,
          "ratio": 1.0
        },
        {
          "axis": "tp",
          "collective": "all_reduce",
          "count": 13,
          "bytes": 67260.0,
          "nodes": 1.0,
          "native_count": 9,
          "native_bytes": 1620.0,
          "ratio": 41.51851851851852
        },
        {
          "axis": "tp",
          "collective": "reduce_scatter",
          "count": 8,
          "bytes": 65536.0,
          "nodes": 1.0,
          "native_count": 12,
          "native_bytes": 98304.0,
          "ratio": 0.6666666666666666
        }
      ],
      "gathered": []
    },
    {
      "mesh": "dp_shard=2",
      "verdict": "fail",
      "domain": "native",
      "numerics": "canonical",
      "loss_max_relative": 0.0,
      "grad_max_relative": 0.4964695438950636,
      "parameter_max_relative": 1.9999650026378988,
      "worst_error_over_bound": null,
      "differing_bits": 1865456,
      "threads": 1,
      "worst_op": "reduce_gradients",
      "ops": null,
      "losses": LOSSES,
      "findings": [
        {
          "step": 1,
          "kind": "collective",
          "op": "reduce_gradients",
          "phase": "backward",
          "module": "output",
          "id": "step 1, microbatch 0, backward, output, reduce_gradients #0",
          "collective": "reduce_scatter",
          "axis": "dp_shard",
          "group": [
            0,
            1
          ],
          "rank": 1,
          "ranks": [
            1
          ],
          "rule": "",
          "layouts": "Float[256,64] [dp_shard=P(sum:8/1)] -> [dp_shard=S(0)]",
          "worst": "value of reduce_gradients[159, 41] = 0.0001032675573, one device: 0.000223259296 (relative 7.4e-03; 8192 of 16384 elements wrong, on rank 1: in [128:256, 0:64])",
          "pattern": "in [128:256, 0:64]",
          "before": "36 ops with what they took, 12 moves between layouts, and 1 value between ops, agree",
          "limits": "",
          "transient": false,
          "difference": "gradient of layers.0.up.weight[184, 42] = -0.000261096342, one device: -0.0006008142373 (relative 4.8e-01; 8192 of 16384 elements wrong, on rank 1: in [128:256, 0:64])",
          "case": "FOLDER/out/case-1.h5",
          "next": "lockstep verify FOLDER/job.toml --optimizer.decay_1d false --meshes dp_shard=2 --verify.steps 1"
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

}  // namespace lockstep
