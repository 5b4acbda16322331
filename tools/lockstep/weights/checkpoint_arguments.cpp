#include "tools/lockstep/weights/checkpoint_arguments.h"

#include <CLI/CLI.hpp>

namespace lockstep::tool {
namespace {

void add_output(CLI::App& command, Output& output) {
  command.add_option("--json", output.json, "Write a machine-readable result to FILE")->type_name("FILE");
  command.add_flag("-q,--quiet", output.quiet, "Results and errors only");
  command.allow_extras();
}

/// One that reads a folder and writes, or reads, another.
CLI::App* add_action(CLI::App& command, WeightsOptions& weights, const char* name, const char* about, const char* from,
                     const char* to) {
  auto* action = command.add_subcommand(name, about);
  action->add_option("from", weights.from, from)->required()->type_name("FROM");
  action->add_option("to", weights.to, to)->required()->type_name("TO");
  action->callback([&weights, name] { weights.action = name; });
  add_output(*action, weights.output);
  return action;
}

void add_averages(CLI::App& action, WeightsOptions& weights) {
  action.add_flag("--averages", weights.averages, "Of each weight the average that optimizer.ema_decay keeps");
}

}  // namespace

void add_checkpoint_commands(CLI::App& command, CheckpointOptions& inspect, WeightsOptions& weights) {
  command.footer(
      "Example:\n  lockstep checkpoint inspect outputs/checkpoint/step-100\n"
      "  lockstep checkpoint export outputs/checkpoint/step-100 model-for-transformers");
  command.require_subcommand(1);
  auto* list = command.add_subcommand("inspect", "List the tensors of a checkpoint and check every byte");
  list->footer("Example:\n  lockstep checkpoint inspect outputs/checkpoint/step-100");
  list->add_option("folder", inspect.folder, "Checkpoint folder")->required()->type_name("FOLDER");
  add_output(*list, inspect.output);

  auto* in = add_action(
      command, weights, "import", "Make a checkpoint of weights that Hugging Face's transformers or torchtitan saved",
      "Folder with config.json and model.safetensors, or with .metadata", "Folder of the new checkpoint");
  in->footer(
      "Example:\n  lockstep checkpoint import Llama-3.2-1B weights\n"
      "  lockstep train job.toml --checkpoint.initial_load_path weights\n"
      "  lockstep checkpoint import outputs/checkpoint/step-1000 weights --job llama3_8b.toml");
  in->add_option("--job", weights.job, "Job that has the model, where the folder does not say it (torchtitan's)")
      ->type_name("JOB.toml");
  auto* plain = add_action(command, weights, "merge", "Make a checkpoint of weights alone: changes of [lora] merged in",
                           "Checkpoint folder", "Folder of the new checkpoint");
  plain->footer(
      "Example:\n  lockstep checkpoint merge outputs/checkpoint/step-100 tuned\n"
      "  lockstep generate tuned --prompt Hello --bytes");
  add_averages(*plain, weights);
  auto* out =
      add_action(command, weights, "export", "Write the weights of a checkpoint for Hugging Face's transformers",
                 "Checkpoint folder", "Folder to write");
  out->footer("Example:\n  lockstep checkpoint export outputs/checkpoint/step-100 model --dtype bfloat16");
  add_averages(*out, weights);
  out->add_option("--dtype", weights.dtype, "float32 or bfloat16 (float32)")->type_name("DTYPE");
  out->add_option("--length", weights.length, "Longest sequence, for config.json (training.seq_len of the job)")
      ->type_name("N")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 30));
  add_action(command, weights, "diff", "Say which tensors of two folders of weights differ, and how much", "One folder",
             "The other")
      ->footer(
          "Example:\n  lockstep checkpoint diff outputs/a/checkpoint/step-100 outputs/b/checkpoint/step-100\n\n"
          "Exit code 3 where something differs.");
  auto* cut =
      add_action(command, weights, "reshard", "Write a checkpoint anew, its tensors cut into as many chunks as said",
                 "Checkpoint folder", "Folder to write");
  cut->footer("Example:\n  lockstep checkpoint reshard outputs/checkpoint/step-100 for-64/step-100 --chunks 64");
  cut->add_option("--chunks", weights.chunks, "Chunks of each tensor (1)")
      ->type_name("N")
      ->check(CLI::Range(int64_t{1}, int64_t{65536}));
}

}  // namespace lockstep::tool
