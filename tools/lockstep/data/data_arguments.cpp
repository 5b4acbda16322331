#include "tools/lockstep/data/data_arguments.h"

#include <CLI/CLI.hpp>

namespace lockstep::tool {
namespace {

constexpr const char* kPrepareExamples =
    "lockstep data prepare data/kjv.txt --tokenizer bytes --output data/kjv\n"
    "  lockstep data prepare 'wiki/*.parquet' more.jsonl --tokenizer tokenizer.json --output data/wiki\n"
    "  lockstep data prepare chats.jsonl --chat chatml --tokenizer tokenizer.json --output data/chats";
constexpr const char* kAdoptExample =
    "lockstep data adopt nanoGPT/data/openwebtext/train.bin --vocabulary 50257 --end-of-document 50256 --output owt";
constexpr const char* kInspectExample = "lockstep data inspect data/kjv.bin";

CLI::App& action(CLI::App& command, DataOptions& options, const char* name, const char* about, const char* example) {
  auto* sub = command.add_subcommand(name, about);
  sub->callback([&options, name] { options.action = name; });
  sub->footer(std::string("Example:\n  ") + example);
  sub->add_option("--json", options.output.json, "Write a machine-readable result to FILE")->type_name("FILE");
  sub->add_flag("-q,--quiet", options.output.quiet, "Results and errors only");
  sub->allow_extras();
  return *sub;
}

}  // namespace

void add_data_commands(CLI::App& command, DataOptions& options) {
  command.footer(std::string("Example:\n  ") + kPrepareExamples);
  command.require_subcommand(1);
  auto& prepare =
      action(command, options, "prepare", "Make a file of tokens of texts (docs/data.md)", kPrepareExamples);
  prepare
      .add_option("inputs", options.inputs,
                  "Texts (a document each), .jsonl (a document a line), .parquet (a row), folders and globs of these")
      ->required()
      ->type_name("INPUT");
  prepare
      .add_option("--tokenizer", options.tokenizer,
                  "bytes, or a file: tokenizer.json, tiktoken's ranks, SentencePiece's model")
      ->required()
      ->type_name("bytes|FILE");
  prepare.add_option("--output", options.file, "NAME.bin, NAME.borders and NAME.json are written")
      ->required()
      ->type_name("NAME");
  prepare.add_option("--field", options.field, "Of .jsonl and .parquet: what is the text (text)")->type_name("NAME");
  prepare.add_option("--begin-of-document", options.begin_of_document, "Begins each document with this token, or id")
      ->type_name("TOKEN|ID");
  prepare.add_option("--end-of-document", options.end_of_document, "Ends each document with this token, or id")
      ->type_name("TOKEN|ID");
  prepare
      .add_option("--chat", options.chat,
                  "Inputs are conversations, .jsonl with messages or preferences, written so (docs/fine_tuning.md)")
      ->type_name("chatml|llama3|plain")
      ->check(CLI::IsMember({"chatml", "llama3", "plain"}));
  prepare.add_option("--longest", options.longest, "Of --chat: conversations of more tokens are left out")
      ->type_name("N")
      ->check(CLI::Range(int64_t{2}, int64_t{1} << 30));
  prepare.add_option("--pattern", options.pattern, "Of tiktoken's ranks: how text is cut")
      ->type_name("gpt2|cl100k|llama3");
  auto& adopt = action(command, options, "adopt",
                       "Copy a file of tokens of nanoGPT's, of llm.c's or of bare ids, with a sidecar", kAdoptExample);
  adopt.add_option("file", options.inputs, "File of tokens")->required()->expected(1)->type_name("FILE");
  adopt.add_option("--vocabulary", options.vocabulary, "Ids are below it")
      ->required()
      ->type_name("N")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 32));
  adopt.add_option("--output", options.file, "NAME.bin and NAME.json are written, NAME.borders if documents are known")
      ->required()
      ->type_name("NAME");
  adopt.add_option("--dtype", options.dtype, "What the file is nothing but ids of; without it as it is recognized")
      ->type_name("uint16|uint32")
      ->check(CLI::IsMember({"uint16", "uint32"}));
  adopt.add_option("--end-of-document", options.end_of_document, "The id that ends each document")->type_name("ID");
  auto& inspect =
      action(command, options, "inspect", "Tell what is in a file of tokens, and check all of it", kInspectExample);
  inspect.add_option("file", options.file, "File of tokens")->required()->type_name("FILE");
}

}  // namespace lockstep::tool
