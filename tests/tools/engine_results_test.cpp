// The JSON of `lockstep rules` and `lockstep bench`: stable, so that other programs may read it.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "tests/support/instruction_sets.h"
#include "tests/tools/run_lockstep.h"

namespace lockstep {
namespace {

/// The rows by name; a failed run leaves none.
std::map<std::string, nlohmann::json> rows_of(const std::string& command, const std::string& key) {
  const TemporaryFolder folder;
  const auto run = run_lockstep(command + " --json " + folder.file("result.json"));
  EXPECT_EQ(run.code, 0) << run.err;
  std::map<std::string, nlohmann::json> rows;
  if (run.code != 0) return rows;
  const auto result = nlohmann::json::parse(file_content(folder.file("result.json")));
  for (const auto& row : result.at("rows")) {
    const bool is_listed = row.value("served", "") != "missing";
    if (is_listed) EXPECT_NE(run.out.find(row.at(key).get<std::string>()), std::string::npos) << row;
    rows[row.at(key).get<std::string>()] = row;
  }
  return rows;
}

nlohmann::json profile_of_a_step() {
  const TemporaryFolder folder;
  const auto run = run_lockstep("bench step --profile --json " + folder.file("profile.json"));
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_NE(run.out.find("of the speed of its products alone"), std::string::npos) << run.out;
  return nlohmann::json::parse(file_content(folder.file("profile.json")));
}

TEST(Rules, ListsRowsAndWhatFollowsFromThem) {
  const auto rows = rows_of("rules", "op");
  ASSERT_TRUE(rows.contains("mm") && rows.contains("add_.Tensor"));
  EXPECT_EQ(rows.at("mm").at("family"), "matmul");
  EXPECT_EQ(rows.at("mm").at("dims"), "mk,kn->mn");
  EXPECT_TRUE(rows.at("mm").at("derived_from").is_null());
  EXPECT_EQ(rows.at("add_.Tensor").at("derived_from"), "add.Tensor");
  EXPECT_EQ(rows.at("add_.Tensor").at("dims"), rows.at("add.Tensor").at("dims"));
  for (const auto& [op, row] : rows) EXPECT_GE(row.at("checked").get<int64_t>(), 0) << op;
}

TEST(Rules, SayOfEachMissingOverloadWhy) {
  const TemporaryFolder folder;
  const auto run = run_lockstep("rules --missing --json " + folder.file("result.json"));
  ASSERT_EQ(run.code, 0) << run.err;
  const auto result = nlohmann::json::parse(file_content(folder.file("result.json")));
  size_t missing = 0;
  for (const auto& row : result.at("rows")) {
    if (row.at("served") != "missing") continue;
    ++missing;
    const auto reason = row.at("reason").get<std::string>();
    EXPECT_GT(reason.size(), 10U) << row;
    EXPECT_EQ(reason.find('\n'), std::string::npos) << row;
    EXPECT_NE(("\n" + run.out).find("\n" + row.at("op").get<std::string>() + " "), std::string::npos) << row;
  }
  const auto& counts = result.at("counts");
  EXPECT_EQ(counts.at("overloads").get<size_t>(), result.at("rows").size());
  EXPECT_EQ(counts.at("by_way").at("missing").get<size_t>(), missing);
  EXPECT_EQ(counts.at("served").get<size_t>() + missing, result.at("rows").size());
  EXPECT_GE(counts.at("served"), 1200);
  EXPECT_GE(counts.at("functional"), 400);
}

TEST(Rules, PageIsWhatTheTableIs) {
  const TemporaryFolder folder;
  ASSERT_EQ(run_lockstep("rules --page " + folder.file("ops.md")).code, 0);
  const bool same = file_content(folder.file("ops.md")) == file_content(LOCKSTEP_SOURCE_DIR "/docs/ops.md");
  EXPECT_TRUE(same) << "docs/ops.md is of another table; write it anew: lockstep rules --page docs/ops.md";
  const auto page = file_content(folder.file("ops.md"));
  const auto counted = page.substr(page.find("rows serve ") + 11);
  const auto readme = file_content(LOCKSTEP_SOURCE_DIR "/README.md");
  const auto text = counted.substr(0, counted.find(" of ")) + " of LibTorch's ";
  EXPECT_NE(readme.find(text), std::string::npos) << "README.md does not say: " << text << "...";
  EXPECT_EQ(run_lockstep("rules --page /nowhere/ops.md").code, 5);
}

void expect_measured(const nlohmann::json& row, const std::string& unit) {
  EXPECT_EQ(row.at("unit"), unit);
  EXPECT_FALSE(row.at("peer_name").get<std::string>().empty());
  EXPECT_GT(row.at("ours").get<double>(), 0);
  EXPECT_GT(row.at("peer").get<double>(), 0);
  EXPECT_LE(row.at("ratio").get<double>(), row.at("ratio_upper").get<double>());
}

TEST(Bench, DispatchHasItsRows) {
  const auto rows = rows_of("bench dispatch", "name");
  for (const char* name : {"add", "mm", "view", "add_four_ranks", "add_new_shape"}) {
    ASSERT_TRUE(rows.contains(name)) << name;
    expect_measured(rows.at(name), "ns");
  }
  ASSERT_TRUE(rows.contains("op_table"));
  expect_measured(rows.at("op_table"), "ms");
}

/// Names behind "They are ", which a pattern that fits nothing lists.
std::set<std::string> numerics_names() {
  const auto run = run_lockstep("bench numerics -q --rows nothing");
  EXPECT_EQ(run.code, 2);
  const std::string start = "They are ";
  std::istringstream list(run.err.substr(run.err.find(start) + start.size()));
  std::set<std::string> names;
  for (std::string name; std::getline(list >> std::ws, name, ',');) names.insert(name.substr(0, name.find('.')));
  return names;
}

TEST(Bench, NumericsHasItsRows) {
  const auto names = numerics_names();
  for (const char* name :
       {"mm_512x256x768_nt", "mm_512x768x256_nn", "mm_768x512x256_tn", "mm_4096x256x1536_nt", "mm_256x2048x16384_nt",
        "mm_256x4096x28672_nt_t2", "mm_28672x256x4096_tn", "mm_4096x256x14336_tn", "attention_fwd_bwd_T256",
        "attention_fwd_bwd_T512", "attention_fwd_bwd_T1024", "attention_fwd_bwd_T2048", "attention_fwd_bwd_T4096",
        "attention_fwd_bwd_T8192_t2", "attention_fwd_bwd_T1024_d16", "step_512_tokens", "step_4096_tokens",
        "generate_1x16", "generate_8x16"})
    EXPECT_TRUE(names.contains(name)) << name;
}

TEST(Bench, NumericsMeasuresWhatIsAskedFor) {
  const auto rows =
      rows_of("bench numerics --seconds 0 --rows '*_512x*,mm_512x256x256_*,*_T256*,adamw*,gradient_norm*'", "name");
  for (const char* name : {"mm_512x256x256_nt",
                           "mm_512x256x256_nn_t2",
                           "attention_fwd_bwd_T256",
                           "attention_fwd_bwd_T256_t2",
                           "rms_norm_512x256",
                           "rms_norm_backward_512x256",
                           "swiglu_512x768",
                           "swiglu_backward_512x768",
                           "sigmoid_512x768",
                           "silu_512x768",
                           "silu_backward_512x768",
                           "gelu_512x768",
                           "gelu_backward_512x768",
                           "add_512x768",
                           "mul_512x768",
                           "softmax_512x2048",
                           "softmax_backward_512x2048",
                           "log_softmax_512x2048",
                           "log_softmax_backward_512x2048",
                           "cross_entropy_512x2048",
                           "cross_entropy_backward_512x2048",
                           "rotate_pairs_512x256",
                           "embedding_backward_512x256",
                           "sum_rows_512x2048",
                           "sum_columns_512x2048",
                           "adamw_1536x256",
                           "gradient_norm_1536x256"}) {
    ASSERT_TRUE(rows.contains(name)) << name;
    expect_measured(rows.at(name), "ms");
  }
  EXPECT_FALSE(rows.contains("step_512_tokens"));
}

TEST(Bench, CollectivesHaveTheirRows) {
  const auto rows = rows_of("bench collectives --seconds 0 --rows 'allreduce_4B_*,allgather_1MiB_*'", "name");
  ASSERT_EQ(rows.size(), 6u);
  for (const char* what : {"allreduce_4B", "allgather_1MiB"})
    for (const char* way : {"shm", "tcp", "gloo"}) expect_measured(rows.at(std::string(what) + "_" + way + "_2"), "us");
  const auto peers = rows_of("bench collectives --seconds 0 --rows 'allreduce_1MiB_*'", "peer_name");
  for (const char* peer : {"memcpy", "sockets", "by hand"}) {
    ASSERT_TRUE(peers.contains(peer)) << peer;
    expect_measured(peers.at(peer), "us");
  }
  EXPECT_EQ(run_lockstep("bench collectives --rows nothing").code, 2);
}

TEST(Bench, ProcessesHaveTheirRows) {
  const auto rows = rows_of("bench processes --seconds 0 --rows processes_512_tokens,async_tp*_512_tokens", "name");
  ASSERT_EQ(rows.size(), 7u);
  for (const char* name : {"processes_512_tokens", "async_tp_512_tokens", "async_tp_tcp_gather_wait_512_tokens"})
    expect_measured(rows.at(name), "ms");
  EXPECT_EQ(run_lockstep("bench processes --rows nothing").code, 2);
}

TEST(Bench, ScaleHasItsRows) {
  const auto rows = rows_of("bench scale --seconds 0 --rows processes_2,simulated_8", "name");
  ASSERT_EQ(rows.size(), 2u);
  for (const auto& [name, row] : rows) {
    expect_measured(row, "ms");
    EXPECT_EQ(row.at("ranks"), name == "processes_2" ? 2 : 8);
    EXPECT_GT(row.at("peak_memory_bytes").get<double>(), 1e8);
  }
  EXPECT_EQ(run_lockstep("bench scale --rows processes_3").code, 2);
}

/// Shares of a step add up: its products do most of it, and nothing is counted twice.
TEST(Bench, AStepHasAProfile) {
  const auto profile = profile_of_a_step();
  double seconds = 0, flops = 0;
  for (const auto& op : profile.at("ops"))
    seconds += op.at("seconds").get<double>(), flops += op.at("flops").get<double>();
  const double step = profile.at("step_seconds");
  EXPECT_GT(seconds, 0.5 * step);
  EXPECT_LT(seconds, 1.5 * step);
  EXPECT_LT(profile.at("product_seconds").get<double>(), seconds);
  // 6 for each parameter of a product and token; attention 7 products of 2 * 16 * 256 * 256 * 16 / 2, in 6 layers.
  const double products = 6.0 * 512 * (6 * (4 * 256 * 256 + 3 * 256 * 768) + 256 * 2048);
  EXPECT_NEAR(flops, products + 6 * 7.0 * 2 * 16 * 256 * 256 * 16, 1e-9 * products);
}

class BenchInstructions : public testing::OnInstructionSet {};
INSTANTIATE_TEST_SUITE_P(Sets, BenchInstructions, testing::every_set(), testing::set_name);

TEST_P(BenchInstructions, AreLimited) {
  const TemporaryFolder folder;
  const std::string set(name_of(GetParam()));
  const auto run = run_lockstep("bench numerics --seconds 0 --rows add_512x768 --instructions " + set + " --json " +
                                folder.file("result.json"));
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_EQ(nlohmann::json::parse(file_content(folder.file("result.json"))).at("instructions"), set);
}

}  // namespace
}  // namespace lockstep
