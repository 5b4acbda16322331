#include "tools/lockstep/plan/plan_arguments.h"

#include <CLI/CLI.hpp>

#include "core/error.h"

namespace lockstep::tool {
namespace {

constexpr int64_t kMost = int64_t{1} << 24;

CLI::Range from_one() { return {int64_t{1}, kMost}; }

}  // namespace

const char* const kPlanExamples =
    "lockstep plan --ranks 16384 --model 405B --batch 2048\n"
    "  lockstep plan --ranks 64 --model 8B --hardware h200 --batch 256 --json plan.json\n"
    "  lockstep plan --ranks 2048 --model deepseek-v3-671B --seq-len 4096 --batch 4096\n"
    "  lockstep plan --model 405B --mesh pp=16,dp_shard=64,tp=8 --batch 2048 --recompute none\n\n"
    "docs/scale.md says what is assumed, and how predictions compare with published runs.";

void add_plan_options(CLI::App& command, PlanOptions& options) {
  command.add_option("--ranks", options.ranks, "All meshes of so many ranks")->type_name("N")->check(from_one());
  command.add_option("--mesh", options.mesh, "This mesh alone, with what its time is spent on")->type_name("MESH");
  command
      .add_option("--model", options.model,
                  "Flavor of llama3 or moe, such as 8B or deepseek-v3-671B; moe/debugmodel: moe's")
      ->required()
      ->type_name("FLAVOR");
  command.add_option("--hardware", options.hardware, "a100, h100 (the default), h200, or a file (docs/scale.md)")
      ->type_name("NAME|FILE");
  command.add_option("--dtype", options.dtype, "What is computed in (bfloat16)")
      ->type_name("bfloat16|float32")
      ->check(CLI::IsMember({"bfloat16", "float32"}));
  command.add_option("--batch", options.batch, "Sequences of a step (1024)")->type_name("N")->check(from_one());
  command.add_option("--seq-len", options.seq_len, "Tokens of a sequence (8192)")->type_name("N")->check(from_one());
  command
      .add_option("--local-batch", options.local_batch, "Sequences of a microbatch; without it the fastest that fits")
      ->type_name("N")
      ->check(from_one());
  command.add_option("--stages-per-rank", options.stages_per_rank, "Of pp; without it the fastest that fits")
      ->type_name("N")
      ->check(from_one());
  command.add_option("--recompute", options.recompute, "Without it the fastest that fits")
      ->type_name("none|linear|op|full")
      ->check(CLI::IsMember({"none", "linear", "op", "full"}));
  command.add_option("--rows", options.rows, "Lines of the table (10)")->type_name("N")->check(from_one());
}

PlanOptions checked(const PlanOptions& options) {
  if (options.ranks.has_value() != options.mesh.empty())
    fail<BadInput>("lockstep plan needs --ranks or --mesh{}: lockstep plan --ranks 64 --model 8B.",
                   options.ranks ? ", not both" : "");
  return options;
}

}  // namespace lockstep::tool
