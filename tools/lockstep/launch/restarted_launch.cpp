#include "tools/lockstep/launch/restarted_launch.h"

#include <algorithm>
#include <thread>

#include "core/interruption.h"
#include "tools/lockstep/commands.h"
#include "tools/lockstep/console.h"
#include "tools/lockstep/reports/flight_report.h"
#include "trainer/identity/run_start.h"
#include "trainer/job/batching.h"
#include "trainer/job/job_file.h"

namespace lockstep::tool {
namespace {

TrainOptions train_options(const std::vector<std::string>& command) {
  std::vector<const char*> words{"lockstep"};
  for (const auto& word : command) words.push_back(word.c_str());
  const auto parsed = parse_arguments(static_cast<int>(words.size()), words.data());
  const auto* train = std::get_if<TrainOptions>(&parsed);
  if (!train || train->dry_run || train->print_job)
    fail<BadInput>("--restarts is for lockstep train: it goes on from checkpoints. Leave it out.");
  return *train;
}

/// As each rank of a whole launch resolves it.
trainer::Job job_of(const TrainOptions& train, int64_t ranks) {
  use_plugins(train.job.plugins);
  const trainer::Launch launch{0, ranks, false};
  const auto asked = trainer::load_job(train.job.file, train.job.overrides);
  auto job = trainer::resolve(trainer::with_saved_values(asked, launch), launch);
  if (!job.checkpoint.enable)
    fail<BadInput>("--restarts goes on from checkpoints, and checkpoint.enable is false: add --checkpoint.enable.");
  return job;
}

/// Of those that were lost: what the launcher ended is not lost, unless it was stopped.
int64_t lost_ranks(const std::vector<RankStory>& stories) {
  return std::count_if(stories.begin(), stories.end(),
                       [](const RankStory& story) { return story.signal != 0 || story.stopped; });
}

std::string ranks_text(int64_t count) { return fmt::format("{} rank{}", count, count == 1 ? "" : "s"); }

std::string reason_of(const std::vector<RankStory>& stories) {
  if (auto sentence = blame(stories); !sentence.empty()) return sentence;
  for (const auto& story : stories)
    if (story.signal != 0) return fmt::format("rank {}: {}", story.rank, story.error);
  return "the ranks lost each other";
}

}  // namespace

RestartedLaunch::RestartedLaunch(const LaunchOptions& options)
    : options_(options),
      slots_(options.processes, Slots::Seconds(options.back_after.value_or(0))),
      result_(options.command) {
  const auto job = job_of(train_options(options.command), options.processes);
  mesh_ = trainer::mesh_of(job);
  global_batch_size_ = job.training.global_batch_size;
  asks_for_a_step_ = job.checkpoint.load_step != -1;
}

ExitCode RestartedLaunch::run() {
  while (const auto mesh = wait_for_ranks()) {
    LaunchOptions some = options_;
    some.processes = mesh->ranks();
    LaunchedRanks ranks(some, elastic_words(*mesh));
    if (had_a_start_)
      print_err("lockstep: going on on {}: {} of {}\n", mesh->text(), mesh->ranks(), ranks_text(options_.processes));
    had_a_start_ = true;
    ranks.wait([&] {
      const auto now = mesh_for_now();
      return now && now->ranks() > mesh->ranks();
    });
    if (!goes_on(ranks)) break;
  }
  if (!restarts_.empty()) result_.add("restarts", restarts_);
  return code_;
}

std::optional<trainer::MeshDegrees> RestartedLaunch::mesh_for_now() {
  const auto mesh = trainer::largest_mesh(mesh_, global_batch_size_, slots_.free(Clock::now()));
  return mesh && mesh->ranks() >= options_.min_ranks.value_or(options_.processes) ? mesh : std::nullopt;
}

std::optional<trainer::MeshDegrees> RestartedLaunch::wait_for_ranks() {
  constexpr std::chrono::milliseconds kPause{20};
  for (bool is_told = false;; is_told = true, std::this_thread::sleep_for(kPause)) {
    if (interruption_requested()) {
      code_ = ExitCode::kInterrupted;
      return std::nullopt;
    }
    if (const auto mesh = mesh_for_now()) return mesh;
    if (!is_told) print_err("lockstep: {}\n", want_of_ranks());
    if (!slots_.are_coming()) return std::nullopt;
  }
}

std::string RestartedLaunch::want_of_ranks() {
  const auto left = slots_.free(Clock::now());
  return fmt::format("{} left of {}, and --min-ranks is {}: {}", ranks_text(left), options_.processes,
                     options_.min_ranks.value_or(options_.processes),
                     slots_.are_coming() ? "waiting for others to come back."
                                         : "the run ends. It goes on with the same "
                                           "command.");
}

bool RestartedLaunch::goes_on(const LaunchedRanks& ranks) {
  print_err("{}", ranks.reports());
  code_ = ranks.code();
  if (code_ == ExitCode::kInterrupted && ranks.was_wanted_elsewhere() && !interruption_requested()) return true;
  if (code_ == ExitCode::kFine) return false;
  const auto stories = ranks.stories();
  if (ranks.lost_one()) report_loss(stories);
  if (code_ == ExitCode::kTransport && !interruption_requested()) {
    if (static_cast<int64_t>(restarts_.size()) < *options_.restarts) {
      note_loss(ranks);
      return true;
    }
    print_err("lockstep: all {} restarts of --restarts are used up.\n", *options_.restarts);
  }
  result_.add("ranks", to_json(stories));
  return false;
}

void RestartedLaunch::note_loss(const LaunchedRanks& ranks) {
  const auto stories = ranks.stories();
  const auto lost = lost_ranks(stories);
  slots_.lose(lost, Clock::now());
  restarts_.push_back({{"reason", reason_of(stories)}, {"ranks", stories.size()}, {"lost", lost}});
  print_err("lockstep: restart {} of {}\n", restarts_.size(), *options_.restarts);
}

/// A smaller launch finds its mesh in the same way, from the degrees and the batch of the whole one. A single process
/// would simulate that one.
std::vector<std::string> RestartedLaunch::elastic_words(const trainer::MeshDegrees& mesh) const {
  const auto& degrees = mesh.ranks() == 1 ? mesh : mesh_;
  std::vector<std::string> words{"--parallelism.elastic", "--training.global_batch_size",
                                 std::to_string(global_batch_size_)};
  for (const auto& axis : trainer::MeshDegrees::all())
    words.insert(words.end(), {fmt::format("--parallelism.{}", axis.key), std::to_string(degrees.*axis.size)});
  if (had_a_start_ && asks_for_a_step_) words.insert(words.end(), {"--checkpoint.load_step", "-1"});
  return words;
}

ExitCode run_launch_with_restarts(const LaunchOptions& options) {
  const InterruptionHandler handler;
  return RestartedLaunch(options).run();
}

}  // namespace lockstep::tool
