#pragma once
#include "tools/lockstep/reports/verify/verify_page.h"

/// Pages of verification without a run.
namespace lockstep::tool {

inline VerifyPage sample_page(size_t planned) {
  VerifyPage page;
  page.job = "demo";
  page.model = "llama3 debugmodel";
  page.batch = "8 x 256 tokens, float32";
  page.numerics = "canonical";
  page.machine = "a processor, 2 threads";
  page.build = "lockstep 0.1.0, LibTorch 2.11.0";
  page.date = "2026-02-03 04:05 UTC";
  page.command = "lockstep verify jobs/demo.toml --html page.html";
  page.planned = planned;
  page.finished = true;
  return page;
}

inline PageMesh agreeing_mesh(const std::string& name) {
  PageMesh mesh;
  mesh.mesh = name;
  mesh.steps = {{.step = 1}, {.step = 2}};
  mesh.bytes = 231100, mesh.ratio = 1.06;
  mesh.least_state = mesh.most_state = 6'291'456, mesh.resident = 741e6;
  mesh.traffic = {{"all_gather", "tp", 12, 98304, 98304}, {"all_reduce", "tp", 13, 67260, 1620}};
  return mesh;
}

inline PageFinding sample_finding() {
  PageFinding finding;
  finding.step = 2;
  finding.kind = "op", finding.op = "embedding_dense_backward", finding.module = "tok_embeddings";
  finding.id = "step 2, microbatch 0, backward, tok_embeddings, embedding_dense_backward #0";
  finding.rule = "embedding \"...d,...->vd\"";
  finding.layouts = "[dp_shard=S(0), tp=R], [dp_shard=S(0), tp=R] -> [dp_shard=P(sum:4/1), tp=S(0)]";
  finding.ranks = "ranks 1, 3", finding.pattern = "zeros, in [1024:2048, 0:256]";
  finding.difference =
      "gradient of tok_embeddings.weight[1056, 251] = -0.009186126292, one device: 0 (relative 1.0e+00; 9984 of 524288 "
      "elements wrong)";
  finding.worst = "result of embedding_dense_backward[1056, 251] = -0.009186126292, one device: 0";
  finding.before = "480 ops and 97 moves agree until then";
  finding.next = "lockstep replay --case outputs/case-1.h5";
  finding.report = "INCONSISTENT  step 2, mesh dp_shard=2,tp=2: gradient of tok_embeddings.weight[1056, 251]";
  finding.modules = {{"gradient norm", 3e-3, 0, 1, 1},
                     {"tok_embeddings", 1, 1.7e-2, 29952, 1572864},
                     {"layers.0.attention.qkv", 0, 2.5e-7, 12, 589824}};
  return finding;
}

inline PageMesh differing_mesh(const std::string& name) {
  auto mesh = agreeing_mesh(name);
  mesh.agrees = false;
  mesh.steps = {{.step = 1}, {.step = 2, .loss = 0, .gradient = 1, .parameter = 1.7e-2, .differing_bits = 1865456}};
  mesh.gathered = {"scaled_dot_product_attention (2 plans): tp=3 cuts 16 heads"};
  mesh.findings = {sample_finding()};
  return mesh;
}

}  // namespace lockstep::tool
