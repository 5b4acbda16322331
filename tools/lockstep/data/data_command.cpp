#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/digest/digest.h"
#include "core/files/mapped_file.h"
#include "core/files/random_access_file.h"
#include "tools/lockstep/commands.h"
#include "tools/lockstep/console.h"
#include "tools/lockstep/data/adopt.h"
#include "tools/lockstep/data/data_program.h"
#include "tools/lockstep/reports/json_output.h"
#include "trainer/data/data_file.h"
#include "trainer/data/token_file.h"

namespace lockstep::tool {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kAnyVocabulary = int64_t{1} << 32;
constexpr int64_t kMostResult = 1 << 16;

/// Files that are there until they have their names.
class Unfinished {
 public:
  explicit Unfinished(const std::string& name)
      : tokens(name + ".tokens"), borders(name + ".borders"), mask(name + ".mask"), result(name) {}
  ~Unfinished() {
    std::error_code none;
    for (const auto& path : {tokens, borders, mask, result}) fs::remove(path, none);
  }
  Unfinished(const Unfinished&) = delete;
  Unfinished& operator=(const Unfinished&) = delete;

  std::string tokens, borders, mask, result;
};

std::string digest_of(const std::string& path) { return digest(MappedFile(path).bytes()).text(); }

std::vector<std::string> command_of(const DataOptions& options, const Unfinished& files) {
  std::vector<std::string> command{data_python(), data_program(), "--tokenizer", options.tokenizer, "--tokens",
                                   files.tokens,  "--borders",    files.borders, "--result",        files.result,
                                   "--field",     options.field,  "--mask",      files.mask};
  if (!options.chat.empty()) command.insert(command.end(), {"--chat", options.chat});
  if (options.longest > 0) command.insert(command.end(), {"--longest", std::to_string(options.longest)});
  if (!options.pattern.empty()) command.insert(command.end(), {"--pattern", options.pattern});
  if (!options.begin_of_document.empty())
    command.insert(command.end(), {"--begin-of-document", options.begin_of_document});
  if (!options.end_of_document.empty()) command.insert(command.end(), {"--end-of-document", options.end_of_document});
  command.emplace_back("--");
  command.insert(command.end(), options.inputs.begin(), options.inputs.end());
  return command;
}

trainer::TokenSidecar sidecar_of(const DataOptions& options, const Unfinished& files, const nlohmann::json& told) {
  trainer::TokenSidecar sidecar{.dtype = told.at("dtype"), .tokens = told.at("tokens")};
  sidecar.vocabulary = told.at("vocabulary");
  sidecar.text_bytes = told.at("text_bytes");
  sidecar.documents = told.at("documents");
  sidecar.digest = digest_of(files.tokens);
  sidecar.data_digest = trainer::data_digest(files.tokens);
  sidecar.borders_digest = digest_of(files.borders);
  sidecar.tokenizer = options.tokenizer == "bytes" ? "bytes" : fs::path(options.tokenizer).filename().string();
  if (options.tokenizer != "bytes") sidecar.tokenizer_digest = digest_of(options.tokenizer);
  if (options.chat.empty()) return sidecar;
  sidecar.kind = told.at("kind");
  sidecar.mask_digest = digest_of(files.mask);
  return sidecar;
}

/// What would not be heeded.
void require_fitting(const DataOptions& options) {
  if (options.chat.empty() && options.longest > 0) fail<BadInput>("--longest is of conversations: give --chat.");
  if (!options.chat.empty() && options.field != "text")
    fail<BadInput>("--field {} names the text of documents; --chat reads conversations.", options.field);
  for (const auto& [option, token] :
       {std::pair{"--begin-of-document", options.begin_of_document}, {"--end-of-document", options.end_of_document}})
    if (!options.chat.empty() && !token.empty())
      fail<BadInput>("{}: the template of --chat says how turns begin and end.", option);
}

/// The sidecar last: without it, or with that of files that were there before, nothing trains on half of this.
void name_all(const Unfinished& files, const std::string& name, const trainer::TokenSidecar& sidecar) {
  try {
    if (sidecar.documents > 0) fs::rename(files.borders, trainer::borders_path(name));
    if (sidecar.has_mask()) fs::rename(files.mask, trainer::mask_path(name));
    fs::rename(files.tokens, name);
  } catch (const fs::filesystem_error& error) {
    fail<FileError>("{}: cannot be written: {}.", name, error.code().message());
  }
  trainer::write_sidecar(name, sidecar);
}

nlohmann::ordered_json to_json(const trainer::TokenFile& file) {
  nlohmann::ordered_json json = {{"file", file.path()},
                                 {"format", file.format().name},
                                 {"bits", 8 * file.format().width},
                                 {"tokens", file.tokens()},
                                 {"documents", file.borders().size()}};
  if (const auto& sidecar = file.sidecar()) {
    json["vocabulary"] = sidecar->vocabulary;
    json["text_bytes"] = sidecar->text_bytes;
    json["tokenizer"] = sidecar->tokenizer;
    json["kind"] = sidecar->kind;
    json["digest"] = sidecar->digest;
  }
  return json;
}

int64_t learned(const trainer::TokenFile& file) {
  std::vector<std::byte> mask(static_cast<size_t>(file.tokens()));
  file.read_mask(0, mask);
  return file.tokens() - std::count(mask.begin(), mask.end(), std::byte{0});
}

void print(const trainer::TokenFile& file) {
  print_out("{}: {} tokens of {} bits, format {}\n", file.path(), file.tokens(), 8 * file.format().width,
            file.format().name);
  const auto& sidecar = file.sidecar();
  if (!sidecar) return print_out("no sidecar: tokenizer, documents and bytes of the text are not known\n");
  print_out("tokenizer {} {}, vocabulary {}\n", sidecar->tokenizer, sidecar->tokenizer_digest, sidecar->vocabulary);
  if (sidecar->has_mask()) print_out("{}, {} of the tokens are learned\n", sidecar->kind, learned(file));
  print_out("{} documents, {} bytes of text, {:.4f} bytes a token\n", sidecar->documents, sidecar->text_bytes,
            static_cast<double>(sidecar->text_bytes) / static_cast<double>(std::max<int64_t>(sidecar->tokens, 1)));
  print_out("digest {}\n", sidecar->digest);
}

std::string with_ending(const std::string& name) { return fs::path(name).extension() == ".bin" ? name : name + ".bin"; }

ExitCode prepare(const DataOptions& options) {
  require_fitting(options);
  const auto name = with_ending(options.file);
  require_place(name);
  const Unfinished files(name + ".unfinished");
  if (const int code = run_and_wait(command_of(options, files)); code != 0) return static_cast<ExitCode>(code);
  const auto told = nlohmann::json::parse(RandomAccessFile(files.result).text(kMostResult));
  name_all(files, name, sidecar_of(options, files, told));
  const trainer::TokenFile file(name, kAnyVocabulary);
  if (!options.output.quiet) {
    if (const int64_t empty = told.at("empty"); empty > 0)
      print_err("{} documents without a token are left out\n", empty);
    if (const int64_t longer = told.value("too_long", int64_t{0}); longer > 0)
      print_err("{} lines are left out: they have conversations of more than {} tokens\n", longer, options.longest);
    if (const int64_t other = told.at("left_out"); other > 0)
      print_err("{} files of folders are left out: they have other endings\n", other);
    print(file);
  }
  write_json(options.output, to_json(file));
  return ExitCode::kFine;
}

ExitCode adopt_file(const DataOptions& options) {
  const auto name = with_ending(options.file);
  require_place(name);
  const Unfinished files(name + ".unfinished");
  name_all(files, name, adopt(options, files.tokens, files.borders));
  const trainer::TokenFile file(name, options.vocabulary);
  if (!options.output.quiet) print(file);
  write_json(options.output, to_json(file));
  return ExitCode::kFine;
}

/// Every id below the sidecar's vocabulary, every byte by its digest.
void check_all(const trainer::TokenFile& file) {
  if (!file.sidecar()) return;
  const trainer::TokenFile within(file.path(), file.sidecar()->vocabulary);
  std::vector<int64_t> block;
  for (int64_t at = 0; at < file.tokens(); at += 1 << 20) {
    block.resize(static_cast<size_t>(std::min<int64_t>(file.tokens() - at, 1 << 20)));
    within.read(at, block);
  }
  if (const auto found = digest_of(file.path()); found != file.sidecar()->digest)
    fail<BadInput>("dataset {}: its digest is {}, the sidecar tells {}: it is damaged. Prepare it again.", file.path(),
                   found, file.sidecar()->digest);
}

/// Of bytes, as it may be printed.
void print_first_document(const trainer::TokenFile& file) {
  constexpr int64_t kMost = 400;
  if (!file.sidecar() || file.sidecar()->tokenizer != "bytes") return;
  const auto borders = file.borders();
  const auto end = borders.size() > 1 ? static_cast<int64_t>(borders[1]) : file.tokens();
  std::vector<int64_t> ids(static_cast<size_t>(std::min(end, kMost)));
  file.read(0, ids);
  std::string text;
  for (const auto id : ids)
    text += id == '\n' || (id >= 0x20 && id < 256 && id != 0x7f) ? std::string(1, static_cast<char>(id))
                                                                 : fmt::format("\\x{:02x}", id);
  print_out("first document{}:\n{}\n", end > kMost ? ", its beginning" : "", text);
}

ExitCode inspect(const DataOptions& options) {
  const trainer::TokenFile file(options.file, kAnyVocabulary);
  check_all(file);
  write_json(options.output, to_json(file));
  print(file);
  if (!options.output.quiet) print_first_document(file);
  return ExitCode::kFine;
}

}  // namespace

ExitCode run_data(const DataOptions& options) {
  if (options.action == "prepare") return prepare(options);
  return options.action == "adopt" ? adopt_file(options) : inspect(options);
}

}  // namespace lockstep::tool
