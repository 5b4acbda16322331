#include "tools/lockstep/weights/generate_arguments.h"

#include <CLI/CLI.hpp>

#include "core/error.h"
#include "tools/lockstep/argument_checks.h"
#include "trainer/job/mesh_degrees.h"

namespace lockstep::tool {

const char* const kGenerateExamples =
    "lockstep generate outputs/demo/checkpoint/step-60 --prompt 'In the beginning' --count 100\n"
    "  lockstep generate outputs/demo/checkpoint/step-60 --prompt And --temperature 0.8 --top-p 0.9 --seed 7 --samples "
    "3\n"
    "  lockstep generate Llama-3.2-1B --tokens 128000,791 --count 20 --mesh tp=2 --json text.json\n"
    "\nThe same text and log-probabilities on every mesh, and those of training's forward, bit for bit "
    "(docs/generate.md).";

void add_generate_options(CLI::App& command, GenerateCommand& options) {
  command.add_option("folder", options.folder, "Checkpoint folder, or one of Hugging Face's")
      ->required()
      ->type_name("FOLDER");
  auto* prompt =
      command.add_option("--prompt", options.prompt, "Text to go on with; of models that were trained on bytes");
  prompt->type_name("TEXT");
  auto* tokens = command.add_option("--tokens", options.tokens, "Tokens to go on with, instead: 1,2,3");
  tokens->type_name("IDS")->delimiter(',')->excludes(prompt);
  command.add_flag("--bytes", options.bytes, "The model's tokens are bytes, though its checkpoint does not say so");
  command.add_option("--count", options.count, "Tokens to make (64)")->type_name("N")->check(CLI::Range(1, 1 << 20));
  command.add_option("--temperature", options.temperature, "0: the likeliest token each time (0)")
      ->type_name("T")
      ->check(CLI::Range(0.0, 100.0));
  command.add_option("--top-p", options.top_p, "Draw from the likeliest tokens of this share (1)")
      ->type_name("P")
      ->check(CLI::Range(1e-9, 1.0));
  command.add_option("--seed", options.seed, "Draws the tokens (0)")->type_name("S")->check(CLI::NonNegativeNumber);
  command.add_option("--samples", options.samples, "Texts, drawn apart (1)")
      ->type_name("N")
      ->check(CLI::Range(1, 4096));
  command.add_option("--mesh", options.mesh, "Simulated ranks that do it (tp=1)")->type_name("MESH");
  command.add_flag("--int8", options.int8,
                   "Weights of linear maps as eight-bit integers, one scale a row (docs/low_precision.md)");
  command.add_flag("--uncached", options.uncached, "Read all tokens again for each new one; the same bits, slowly");
}

GenerateCommand checked(const GenerateCommand& generate) {
  if (generate.prompt.empty() && generate.tokens.empty())
    fail<BadInput>("there is nothing to go on with: give --prompt TEXT, or --tokens 1,2,3.");
  trainer::parse_mesh(generate.mesh);
  return generate;
}

}  // namespace lockstep::tool
