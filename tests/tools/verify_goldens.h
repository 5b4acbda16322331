#pragma once

/// What inconsistency_test.cpp expects of `lockstep verify`, as golden_report.h prints it. Canonical bits are the same
/// on every machine: so are the numbers here.
namespace lockstep {

/// Rank 1 adds up its part of every gradient without what rank 0 sent; tp=2 reduces no gradient.
inline constexpr const char* kWrongReductionReport = R"(
exit code 3
--- standard output
2 steps bit by bit beside one device; worst relative difference per mesh
mesh                              verdict       loss  gradients  parameters  worst op                 comm/step     time
tp=2                              agrees     0.0e+00    0.0e+00     0.0e+00  -                             ? MB    TIMEx
dp_shard=2                        DIFFERS    0.0e+00          ?           ?  mesh::absolute_maximum        ? MB    TIMEx

tp=2: what a rank sends in a step
axis          collective       per step      MiB sent   nodes    native   ratio
tp            all_gather              ?             ?       ?         ?       ?
tp            all_reduce              ?             ?       ?         ?       ?
tp            reduce_scatter          ?             ?       ?         ?       ?
all                                                 ?                 ?       ?

dp_shard=2: what a rank sends in a step
axis          collective       per step      MiB sent   nodes    native   ratio
dp_shard      all_gather              ?             ?       ?         ?       ?
dp_shard      all_reduce              ?             ?       ?         ?       ?
dp_shard      reduce_scatter          ?             ?       ?         ?       ?
all                                                 ?                 ?       ?

INCONSISTENT  mesh dp_shard=2, step 1: gradient of tok_embeddings.weight[?, ?] = ?, one device: ? (relative ?; ? of 16384 elements wrong)
  op       step 1, microbatch 0, clip, mesh::absolute_maximum #0
  rule     ?
  layouts  [dp_shard=S(0)] -> [dp_shard=P(max)]
  worst    parameter of mesh::absolute_maximum[] = ?, one device: ? (relative ?; 1 of 1 elements wrong)
  before   all earlier ops agree: the fault is in this op, its rule or its communication
  again    lockstep replay --case FOLDER/out/case-1.h5
--- standard error
test: mlp debugmodel on dp_shard=2, simulated in one process
compute float32, seed 0, 4 steps of 8 x 16 tokens (local batch 4, accumulated 1 times)
--- result.json
{
  "job": "test",
  "seed": 0,
  "meshes": [
    {
      "mesh": "tp=2",
      "verdict": "pass",
      "domain": "native",
      "numerics": "canonical",
      "loss_max_relative": 0.0,
      "grad_max_relative": 0.0,
      "parameter_max_relative": 0.0,
      "differing_bits": 0,
      "threads": 1,
      "worst_op": "-",
      "bytes_per_step": ?,
      "native_bytes_per_step": ?,
      "collectives": [
        {
          "axis": "tp",
          "collective": "all_gather",
          "count": ?,
          "bytes": ?,
          "nodes": ?,
          "native_count": ?,
          "native_bytes": ?,
          "ratio": ?
        },
        {
          "axis": "tp",
          "collective": "all_reduce",
          "count": ?,
          "bytes": ?,
          "nodes": ?,
          "native_count": ?,
          "native_bytes": ?,
          "ratio": ?
        },
        {
          "axis": "tp",
          "collective": "reduce_scatter",
          "count": ?,
          "bytes": ?,
          "nodes": ?,
          "native_count": ?,
          "native_bytes": ?,
          "ratio": ?
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
      "grad_max_relative": ?,
      "parameter_max_relative": ?,
      "differing_bits": ?,
      "threads": 1,
      "worst_op": "mesh::absolute_maximum",
      "bytes_per_step": ?,
      "native_bytes_per_step": ?,
      "collectives": [
        {
          "axis": "dp_shard",
          "collective": "all_gather",
          "count": ?,
          "bytes": ?,
          "nodes": ?,
          "native_count": ?,
          "native_bytes": ?,
          "ratio": ?
        },
        {
          "axis": "dp_shard",
          "collective": "all_reduce",
          "count": ?,
          "bytes": ?,
          "nodes": ?,
          "native_count": ?,
          "native_bytes": ?,
          "ratio": ?
        },
        {
          "axis": "dp_shard",
          "collective": "reduce_scatter",
          "count": ?,
          "bytes": ?,
          "nodes": ?,
          "native_count": ?,
          "native_bytes": ?,
          "ratio": ?
        }
      ],
      "gathered": []
    }
  ],
  "verdict": "fail"
}
--- files
out/case-1.h5
)";

/// Rank 1's gradients of weights are a thousandth too large.
inline constexpr const char* kWrongGradientReport = R"(
exit code 3
--- standard output
2 steps bit by bit beside one device; worst relative difference per mesh
mesh                              verdict       loss  gradients  parameters  worst op                 comm/step     time
dp_shard=2                        DIFFERS    0.0e+00          ?           ?  mesh::weight_gradient         ? MB    TIMEx

dp_shard=2: what a rank sends in a step
axis          collective       per step      MiB sent   nodes    native   ratio
dp_shard      all_gather              ?             ?       ?         ?       ?
dp_shard      all_reduce              ?             ?       ?         ?       ?
dp_shard      reduce_scatter          ?             ?       ?         ?       ?
all                                                 ?                 ?       ?

INCONSISTENT  mesh dp_shard=2, step 1: gradient of layers.0.up.weight[?, ?] = ?, one device: ? (relative ?; ? of 16384 elements wrong)
  op       step 1, microbatch 0, backward, output, mesh::weight_gradient #0
  rule     matmul "...n,...k->nk"
  layouts  [dp_shard=S(0)], [dp_shard=S(0)] -> [dp_shard=P(sum:8/1)]
  worst    parameter of mesh::weight_gradient[?, ?] = ?, one device: ? (relative ?; ? of 16384 elements wrong)
  before   all earlier ops agree: the fault is in this op, its rule or its communication
  again    lockstep replay --case FOLDER/out/case-1.h5
--- standard error
test: mlp debugmodel on dp_shard=2, simulated in one process
compute float32, seed 0, 4 steps of 8 x 16 tokens (local batch 4, accumulated 1 times)
--- result.json
{
  "job": "test",
  "seed": 0,
  "meshes": [
    {
      "mesh": "dp_shard=2",
      "verdict": "fail",
      "domain": "native",
      "numerics": "canonical",
      "loss_max_relative": 0.0,
      "grad_max_relative": ?,
      "parameter_max_relative": ?,
      "differing_bits": ?,
      "threads": 1,
      "worst_op": "mesh::weight_gradient",
      "bytes_per_step": ?,
      "native_bytes_per_step": ?,
      "collectives": [
        {
          "axis": "dp_shard",
          "collective": "all_gather",
          "count": ?,
          "bytes": ?,
          "nodes": ?,
          "native_count": ?,
          "native_bytes": ?,
          "ratio": ?
        },
        {
          "axis": "dp_shard",
          "collective": "all_reduce",
          "count": ?,
          "bytes": ?,
          "nodes": ?,
          "native_count": ?,
          "native_bytes": ?,
          "ratio": ?
        },
        {
          "axis": "dp_shard",
          "collective": "reduce_scatter",
          "count": ?,
          "bytes": ?,
          "nodes": ?,
          "native_count": ?,
          "native_bytes": ?,
          "ratio": ?
        }
      ],
      "gathered": []
    }
  ],
  "verdict": "fail"
}
--- files
out/case-1.h5
)";

/// `lockstep replay --case` of the case that the report above names.
inline constexpr const char* kWrongGradientCase = R"(
exit code 3
--- standard output
mesh::weight_gradient on dp_shard=2: DIFFERS from one device
  op       step 1, microbatch 0, backward, output, mesh::weight_gradient #0
  rule     matmul "...n,...k->nk"
  layouts  [dp_shard=S(0)], [dp_shard=S(0)] -> [dp_shard=P(sum:8/1)]
  worst    parameter of mesh::weight_gradient[?, ?] = ?, one device: ? (relative ?; ? of 16384 elements wrong)
  before   all earlier ops agree: the fault is in this op, its rule or its communication
--- standard error
--- result.json
{
  "verdict": "differs",
  "op": "mesh::weight_gradient",
  "mesh": "dp_shard=2",
  "id": "step 1, microbatch 0, backward, output, mesh::weight_gradient #0",
  "finding": "  op       step 1, microbatch 0, backward, output, mesh::weight_gradient #0\n  rule     matmul \"...n,...k->nk\"\n  layouts  [dp_shard=S(0)], [dp_shard=S(0)] -> [dp_shard=P(sum:8/1)]\n  worst    parameter of mesh::weight_gradient[?, ?] = ?, one device: ? (relative ?; ? of 16384 elements wrong)\n  before   all earlier ops agree: the fault is in this op, its rule or its communication"
}
--- files
out/case-1.h5
)";

/// The same beside one device in float64, numbers to three digits.
inline constexpr const char* kNativeReport = R"(
exit code 3
--- standard output
2 steps in float64 beside one device; worst relative difference per mesh
mesh                              verdict       loss  gradients  parameters  worst op                 comm/step     time
dp_shard=2                        DIFFERS    ROUNDING    ROUNDING     0.001  mesh::adamw                   ? MB    TIMEx

INCONSISTENT  mesh dp_shard=2, step 2: parameter of tok_embeddings.weight[?, ?] = ?, one device: ? (relative 0.001; 8192 of 16384 elements wrong)
  op       step 2, microbatch 0, optimizer, tok_embeddings.weight, mesh::adamw #0
  rule     optimizer "...,...,...,...->..."
  layouts  [dp_shard=S(0)], [dp_shard=S(0)], [dp_shard=S(0)], [dp_shard=S(0)] -> 
  worst    parameter of mesh::adamw[?, ?] = ?, one device: ? (relative 0.001; 8192 of 16384 elements wrong)
  before   all earlier ops agree: the fault is in this op, its rule or its communication
  again    lockstep replay --case FOLDER/out/case-1.h5
--- standard error
test: mlp debugmodel on dp_shard=2, simulated in one process
compute float32, seed 0, 4 steps of 8 x 16 tokens (local batch 4, accumulated 1 times)
--- result.json
{
  "job": "test",
  "seed": 0,
  "meshes": [
    {
      "mesh": "dp_shard=2",
      "verdict": "fail",
      "domain": "float64",
      "numerics": "native",
      "loss_max_relative": ROUNDING,
      "grad_max_relative": ROUNDING,
      "parameter_max_relative": 0.001,
      "differing_bits": null,
      "threads": 1,
      "worst_op": "mesh::adamw",
      "bytes_per_step": ?
    }
  ],
  "verdict": "fail"
}
--- files
out/case-1.h5
)";

}  // namespace lockstep
