#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "tools/lockstep/commands.h"
#include "tools/lockstep/console.h"
#include "tools/lockstep/reports/json_output.h"
#include "trainer/checkpoint/checkpoint_file.h"
#include "trainer/generate/generate.h"
#include "trainer/job/job_file.h"
#include "trainer/weights/checkpoint_weights.h"
#include "trainer/weights/exchange/open_weights.h"

namespace lockstep::tool {
namespace {

/// What the weights were trained by, or as much as is known of it.
trainer::Job job_of_weights(const std::string& folder) {
  trainer::Job job;
  if (trainer::is_checkpoint_folder(folder))
    job = trainer::parse_saved_job(trainer::saved_metadata(folder).job, folder);
  job.model = trainer::open_weights(folder)->model();
  return job;
}

/// Nothing is trained, so that there is no optimizer state.
trainer::Job job_to_run(trainer::Job job, const GenerateCommand& options, int64_t length) {
  const auto mesh = trainer::parse_mesh(options.mesh);
  job.checkpoint = {}, job.record = {}, job.verify = {}, job.activation_checkpoint = {};
  job.optimizer = {}, job.optimizer.name = "SGD";
  job.checkpoint.initial_load_path = options.folder;
  job.parallelism = {}, job.parallelism.data_parallel_shard_degree = 1;  // no schedule is run, of nobody's parts
  job.training.seq_len = length, job.training.pack_documents = false;
  job.training.loss = "cross_entropy";  // one text is no pair
  job.training.global_batch_size = job.training.local_batch_size = mesh.data_parallel();
  return job;
}

std::vector<int64_t> tokens_of(const std::string& text) {
  std::vector<int64_t> tokens;
  for (const char byte : text) tokens.push_back(static_cast<unsigned char>(byte));
  return tokens;
}

std::string text_of(const std::vector<int64_t>& tokens) {
  std::string text;
  for (const auto token : tokens) text += token < 256 ? std::string(1, static_cast<char>(token)) : "?";
  return text;
}

/// What is shown of tokens: their text where they are bytes, else their numbers.
struct Shown {
  bool are_bytes;
  std::string operator()(const std::vector<int64_t>& tokens) const {
    return are_bytes ? text_of(tokens) : fmt::format("{}", fmt::join(tokens, " "));
  }
};

Shown shown_as(const GenerateCommand& options, const trainer::Job& job) {
  const bool are_bytes = options.bytes || (job.training.dataset == "text" && !job.training.dataset_path.empty());
  if (!options.prompt.empty() && !are_bytes)
    fail<BadInput>(
        "{}: was not trained on bytes, so that --prompt means nothing to it. Give --tokens 1,2,3, or --bytes if its "
        "tokens are bytes.",
        options.folder);
  return {are_bytes};
}

nlohmann::ordered_json json_of(const trainer::Generated& one, const Shown& shown) {
  nlohmann::ordered_json json{{"tokens", one.tokens}, {"log_probabilities", one.log_probabilities}};
  // What is no UTF-8 is replaced by the writer of JSON.
  if (shown.are_bytes) json["text"] = text_of(one.tokens);
  return json;
}

void report_errors(const std::vector<trainer::WeightError>& errors, bool quiet) {
  if (quiet || errors.empty()) return;
  const auto worst = std::max_element(errors.begin(), errors.end(),
                                      [](const auto& a, const auto& b) { return a.relative < b.relative; });
  print_err("int8 weights: {} linear maps; relative error up to {:.2g}, of {}\n", errors.size(), worst->relative,
            worst->parameter);
}

}  // namespace

ExitCode run_generate(const GenerateCommand& options) {
  const auto trained = job_of_weights(options.folder);
  const auto shown = shown_as(options, trained);
  const auto prompt = options.tokens.empty() ? tokens_of(options.prompt) : options.tokens;
  const auto length = static_cast<int64_t>(prompt.size()) + options.count;
  const auto job = job_to_run(trained, options, length);
  trainer::TrainingRun::Options on_mesh{.mesh = trainer::parse_mesh(options.mesh)};
  if (options.int8) on_mesh.make_model = [&] { return trainer::make_int8_model(job); };
  trainer::TrainingRun run(job, std::move(on_mesh));
  if (options.int8) report_errors(trainer::int8_errors(run), options.output.quiet);
  const auto start = std::chrono::steady_clock::now();
  trainer::GenerateOptions how{.count = options.count, .samples = options.samples, .cached = !options.uncached};
  how.sampling = {options.temperature, options.top_p, static_cast<uint64_t>(options.seed)};
  const auto texts = trainer::generate(run, prompt, how);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  auto rows = nlohmann::ordered_json::array();
  for (const auto& one : texts) {
    print_out("{}\n", shown(one.tokens));
    rows.push_back(json_of(one, shown));
  }
  const double made = static_cast<double>(options.count * options.samples);
  if (!options.output.quiet) print_err("{:.0f} tokens in {:.2f} s, {:.1f} a second\n", made, seconds, made / seconds);
  write_json(options.output, {{"texts", rows}, {"seconds", seconds}});
  return ExitCode::kFine;
}

}  // namespace lockstep::tool
