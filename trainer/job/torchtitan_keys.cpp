#include "trainer/job/torchtitan_keys.h"

#include <fmt/format.h>

#include <algorithm>

#include "trainer/job/batching.h"

namespace lockstep::trainer {
namespace {

constexpr std::string_view kSwitch = "only read when a switch is on that must be off here";
constexpr std::string_view kPython = "about Python's or PyTorch's own machinery";
constexpr std::string_view kAlways = "always so in Lockstep";

// clang-format off
constexpr TorchtitanKey kKeys[] = {
    {"job.config_file", "*", "the job file is an argument"},
    {"job.print_config", "*", "the resolved job is saved, and printed by --print-job"},
    {"job.save_config_file", "*", "the resolved job is saved with every run"},
    {"job.custom_config_module", ""},

    {"model.hf_assets_path", "|./tests/assets/tokenizer", "", "tokens are those of the data's files"},
    {"model.tokenizer_path", "", "", "tokens are those of the data's files"},
    {"model.print_after_conversion", "*", kSwitch},

    {"optimizer.implementation", "for-loop|foreach|fused"},
    {"optimizer.early_step_in_backward", "false"},

    {"training.enable_cpu_offload", "false", "", "parameters stay on the device; optimizer.offload_state keeps AdamW's moments in the host's memory"},
    {"training.dtype", "float32"},
    {"training.gc_freq", "*", kPython},
    {"training.gc_debug", "*", kPython},
    {"training.dataloader.num_workers", "0"},
    {"training.dataloader.*", "*", kPython},

    {"parallelism.pipeline_parallel_expert_parallel_overlap", "*", kSwitch},
    {"parallelism.expert_parallel_comm_backend", "standard", "", "tokens travel by Lockstep's all-to-all"},

    {"activation_checkpoint.per_op_sac_force_recompute_mm_shapes_by_fqns", "[]|[\"moe.router.gate\"]", "",
     "linear maps are kept by turns alone"},
    {"activation_checkpoint.early_stop", "false", "", "all of a recomputed layer runs again"},
    {"activation_checkpoint.visualize_memory_budget_pareto", "false", "", "no picture is drawn"},
    {"activation_checkpoint.preserve_rng_state", "*", kAlways},
    {"activation_checkpoint.determinism_check", "default|none", "", "--verify compares what is recomputed"},
    {"activation_checkpoint.debug", "false", "", "nothing more is printed"},

    {"checkpoint.enable_ft_dataloader_checkpoints", "*", kSwitch},
    {"checkpoint.initial_load_model_only", "true"},
    {"checkpoint.initial_load_in_hf", "*", "a folder's files tell"},
    {"checkpoint.initial_load_in_hf_quantized", "false"},
    {"checkpoint.last_save_model_only", "*", "the last checkpoint holds everything, the model included"},
    {"checkpoint.last_save_in_hf", "false"},
    {"checkpoint.export_dtype", "float32"},
    {"checkpoint.exclude_from_loading", "[]"},
    {"checkpoint.enable_first_step_checkpoint", "false"},
    {"checkpoint.create_seed_checkpoint", "false"},
    {"checkpoint.load_only", "false"},

    {"metrics.disable_color_printing", "*", "set NO_COLOR instead; log lines have no colour"},
    {"metrics.save_for_all_ranks", "false", "", "one rank writes, of all"},
    {"metrics.enable_wandb", "false", "", "nothing is sent; metrics.jsonl and TensorBoard's files have the numbers"},

    {"profiling.enable_memory_snapshot", "false", "", "no snapshot is written; metrics.jsonl has memory by kind"},
    {"profiling.profiler_active", "1", "", "one step is traced at a time"},
    {"profiling.profiler_warmup", "*", "nothing has to warm up before a step is traced"},
    {"profiling.save_memory_snapshot_folder", "*", kSwitch},

    {"debug.deterministic", "*", kAlways},
    {"debug.deterministic_warn_only", "*", kAlways},
    {"debug.moe_force_load_balance", "false"},

    {"compile.enable", "false", "", "kernels are fused already, nothing is compiled"},
    {"compile.components", "*", kSwitch},
    {"compile.backend", "*", kSwitch},
    {"quantize.linear.float8.emulate", "*", "numerics.mode decides: canonical multiplies float32 numbers, native on a GPU codes of eight bits"},
    {"quantize.linear.mx.mxfp8_dim1_cast_kernel_choice", "*", "about kernels of GPUs"},
    {"quantize.grouped_mm.*", "*", kSwitch},
    {"comm.mode", "default"},
    {"comm.trace_buf_size", "*", kPython},
    {"comm.save_traces_folder", "*", kPython},
    {"comm.save_traces_file_prefix", "*", kPython},
    {"memory_estimation.enable", "false"},
    {"memory_estimation.disable_fake_mode", "*", kSwitch},
    {"fault_tolerance.enable", "false"},
    {"fault_tolerance.*", "*", kSwitch},
    {"experimental.custom_import", ""},
    {"experimental.custom_args_module", ""},
    {"validation.local_batch_size", "*", "batches are cut as those of training"},
};
// clang-format on

constexpr std::string_view kLocalTokens = "the files of dataset_path, as tokens, in Lockstep's order";

constexpr TorchtitanValue kValues[] = {
    {"training.dataset", "c4", "tokens", kLocalTokens, "training.dataset_path"},
    {"training.dataset", "c4_test", "tokens", kLocalTokens, "training.dataset_path"},
    {"validation.dataset", "c4_test", "tokens", kLocalTokens, "validation.dataset_path"},
    {"validation.dataset", "c4_validation", "tokens", kLocalTokens, "validation.dataset_path"},
    {"model.converters", "[\"float8\"]", kFloat8Converter, "the name that quantize.linear.float8 had before"},
    {"checkpoint.async_mode", "async_with_pinned_mem", "async", "the copy is in pageable memory"},
};

std::string lowered_batch(const Job& asked, const Job& resolved) {
  const auto batching = derive_batching(resolved, mesh_of(resolved));
  const auto mesh = mesh_of(resolved);
  const auto wanted = largest_microbatch(asked, mesh);
  if (batching.local_batch_size == wanted) return "";
  const bool divides = batching.global_batch_size / batching.data_parallel % wanted == 0;
  return fmt::format("{} {} is lowered to {}: {} samples on {} data-parallel ranks {}",
                     mesh.pp > 1 ? "the size of microbatches" : "training.local_batch_size", wanted,
                     batching.local_batch_size, batching.global_batch_size, batching.data_parallel,
                     divides ? "are summed in complete subtrees" : "do not divide into more");
}

std::string unbalanced_context(const Job&, const Job& resolved) {
  const auto& parallelism = resolved.parallelism;
  if (parallelism.context_parallel_degree == 1 || parallelism.context_parallel_rotate_method == kUlysses) return "";
  if (parallelism.context_parallel_load_balancer == kHeadTail) return "";
  return "no load balancer of context parallelism: late ranks attend to more keys";
}

std::string awaited_collectives(const Job&, const Job& resolved) {
  const bool is_asked = resolved.parallelism.enable_async_tensor_parallel;
  return is_asked && resolved.training.device == "cuda" ? "products wait for their collectives between GPUs" : "";
}

std::string gathered_again(const Job&, const Job& resolved) {
  const bool keeps = resolved.parallelism.fsdp_reshard_after_forward == "never";
  const bool recomputes = resolved.activation_checkpoint.mode != "none";
  if (!keeps || !recomputes || resolved.parallelism.data_parallel_shard_degree == 1) return "";
  return "parameters of recomputed layers are gathered again, although fsdp_reshard_after_forward is \"never\"";
}

std::string scales_of_samples(const Job&, const Job& resolved) {
  if (!resolved.model.converts_by(kFloat8Converter)) return "";
  return "float8 scales of activations are each sample's own, and fused weights (wq, wk and wv) share theirs";
}

constexpr TorchtitanDifference kDifferences[] = {
    {"quantize.linear.float8.recipe_name",
     "of activations each sample has scales of its own, not what a rank has of a microbatch; maps that are fused here, "
     "such as wq, wk and wv, share one.",
     scales_of_samples},
    {"training.dataset",
     "of its data sets dataset_path names files of tokens (lockstep data prepare makes them); the default is text, not "
     "c4_test.",
     nullptr, "c4_test"},
    {"training.local_batch_size",
     "it is lowered where it does not cut a step's samples evenly (canonical: into complete subtrees of their sum), "
     "not "
     "refused.",
     lowered_batch},
    {"training.max_norm", "a step whose gradient norm is not finite ends the run."},
    {"training.mixed_precision_param", "the default is float32, not bfloat16.", nullptr, "bfloat16"},
    {"parallelism.fsdp_reshard_after_forward", "with never, recomputed layers are gathered again.", gathered_again},
    {"parallelism.context_parallel_load_balancer",
     "the default is none, and sequences are not reordered: halves of queries are exchanged; ulysses needs none.",
     unbalanced_context, kHeadTail, [](const Job& asked) { return asked.parallelism.context_parallel_degree > 1; }},
    {"parallelism.enable_async_tensor_parallel",
     "it needs no compiler; between GPUs products wait for their collectives, and those of quantised linears and of "
     "low "
     "rank do everywhere.",
     awaited_collectives},
    {"activation_checkpoint.mode", "the default is none, not selective.", nullptr, "selective"},
    {"activation_checkpoint.memory_budget", "a budget is met by whole layers, spread evenly, and needs no compiler."},
    {"activation_checkpoint.selective_ac_option",
     "with op, what was reduced or gathered is not kept; linear is not in torchtitan."},
    {"checkpoint.load_step", "a checkpoint of another run is refused, see allow_changed."},
    {"checkpoint.async_mode", "async_with_pinned_mem is async."},
    {"comm.train_timeout_seconds",
     "time counts while nothing moves, not from a collective's begin; a resumed run's first step has the other "
     "timeout, "
     "too."},
    {"metrics.save_tb_folder",
     "the files of all starts lie in it together, in no folder by date; every step is written."},
    {"profiling.enable_profiling",
     "ops and collectives are traced by Lockstep, not by PyTorch's profiler; in a traced step nothing overlaps."},
    {"validation.dataset",
     "of its data sets dataset_path names files of tokens; the default is text, not c4_validation.", nullptr,
     "c4_validation", [](const Job& asked) { return asked.validation.enable; }},
    {"validation.seq_len", "the default is training.seq_len, not 2048.", nullptr, "2048",
     [](const Job& asked) { return asked.validation.enable && asked.training.seq_len != 2048; }},
    {"validation.steps", "a batch has training.global_batch_size samples on every mesh, the last one perhaps fewer."},
    {"debug.seed", "without it the seed is 0, not another one in every run."},
};

bool covers(const TorchtitanKey& key, std::string_view dotted) {
  if (!key.pattern.ends_with(".*")) return key.pattern == dotted;
  return dotted.starts_with(key.pattern.substr(0, key.pattern.size() - 1));
}

}  // namespace

std::span<const TorchtitanKey> torchtitan_keys() { return kKeys; }

const TorchtitanKey* find_torchtitan_key(std::string_view dotted) {
  // Exact rows stand above the pattern of their section.
  const auto found =
      std::find_if(std::begin(kKeys), std::end(kKeys), [&](const TorchtitanKey& key) { return covers(key, dotted); });
  return found == std::end(kKeys) ? nullptr : found;
}

std::vector<std::string_view> neutral_values(const TorchtitanKey& key) {
  std::vector<std::string_view> values;
  for (auto rest = key.neutral;; rest.remove_prefix(values.back().size() + 1)) {
    values.push_back(rest.substr(0, rest.find('|')));
    if (values.back().size() == rest.size()) return values;
  }
}

bool asks_for_nothing(const TorchtitanKey& key, std::string_view value) {
  if (key.neutral == "*") return true;
  const auto values = neutral_values(key);
  return std::find(values.begin(), values.end(), value) != values.end();
}

const TorchtitanValue* find_torchtitan_value(std::string_view dotted, std::string_view value) {
  const auto* found = std::ranges::find_if(
      kValues, [&](const TorchtitanValue& each) { return each.key == dotted && each.value == value; });
  return found == std::end(kValues) ? nullptr : found;
}

std::span<const TorchtitanDifference> torchtitan_differences() { return kDifferences; }

std::string difference_text(std::string_view dotted) {
  for (const auto& difference : kDifferences)
    if (difference.key == dotted) return fmt::format("Differs from torchtitan: {}", difference.what);
  return "";
}

std::vector<const TorchtitanDifference*> meant_defaults(std::span<const Setting> settings, const Job& asked) {
  std::vector<const TorchtitanDifference*> meant;
  const auto is_theirs = [](const Setting& each) {
    return each.typed && (find_torchtitan_key(each.key) || find_torchtitan_value(each.key, each.written));
  };
  if (std::ranges::none_of(settings, is_theirs)) return meant;
  for (const auto& each : kDifferences) {
    const bool is_named = std::ranges::find(settings, each.key, &Setting::key) != settings.end();
    if (!each.their_default.empty() && !is_named && (!each.matters || each.matters(asked))) meant.push_back(&each);
  }
  return meant;
}

std::vector<std::string> differences_in(const Job& asked, const Job& resolved) {
  std::vector<std::string> lines;
  for (const auto& difference : kDifferences)
    if (auto line = difference.in_job ? difference.in_job(asked, resolved) : ""; !line.empty())
      lines.push_back(std::move(line));
  return lines;
}

}  // namespace lockstep::trainer
