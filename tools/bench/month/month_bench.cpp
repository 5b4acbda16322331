#include "tools/bench/month/month_bench.h"

#include <fmt/format.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "core/error.h"
#include "tools/bench/month/failure_times.h"
#include "tools/bench/month/watched_launch.h"

namespace lockstep::bench {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using Words = std::vector<std::string>;

constexpr double kStepSeconds = 10;
constexpr int kRanks = 2;
constexpr int64_t kInterval = 20;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

/// A job whose step takes a millisecond, in a folder that goes when this does.
class TinyJob {
 public:
  explicit TinyJob(int64_t steps)
      : folder_(fs::temp_directory_path() / fmt::format("lockstep-month-{}", ::getpid())), steps_(steps) {
    fs::create_directories(folder_);
    std::ofstream text(folder_ / "text.txt");
    for (int i = 0; i < 1000; ++i) text << "the cat " << i * i % 97 << " sat on the mat, ";
    std::ofstream(folder_ / "job.toml") << R"([model]
name = "mlp"
width = 8
layers = 1
hidden = 8
[training]
seq_len = 8
local_batch_size = 1
global_batch_size = 2
[metrics]
log_freq = 1000000
[checkpoint]
keep_latest_k = 3
async_mode = "async"
)";
  }
  ~TinyJob() {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }
  TinyJob(const TinyJob&) = delete;
  TinyJob& operator=(const TinyJob&) = delete;

  std::string file(const std::string& name) const { return (folder_ / name).string(); }
  std::string metrics() const { return file("out/metrics.jsonl"); }

  Words training(const std::string& name) const {
    return {"train",
            file("job.toml"),
            "-q",
            "--json",
            file(name + ".json"),
            "--job.dump_folder",
            file(name),
            "--training.dataset_path",
            file("text.txt"),
            "--training.steps",
            std::to_string(steps_)};
  }
  nlohmann::json result(const std::string& name) const {
    return nlohmann::json::parse(std::ifstream(file(name + ".json")));
  }

 private:
  fs::path folder_;
  int64_t steps_;
};

Words launched(const TinyJob& job, int64_t restarts) {
  Words words{"launch", "-n", std::to_string(kRanks), "--restarts", std::to_string(restarts)};
  const auto training = job.training("out");
  words.insert(words.end(), training.begin(), training.end());
  words.insert(words.end(), {"--parallelism.data_parallel_shard_degree", std::to_string(kRanks), "--checkpoint.enable",
                             "--checkpoint.interval", std::to_string(kInterval)});
  return words;
}

/// The run that is killed, and its virtual clock.
class Month {
 public:
  Month(const TinyJob& job, int64_t steps, int64_t kills)
      : job_(job), steps_(steps), launch_(launched(job, kills + 10), job.file("launch.log")) {}

  /// False if the run has ended before.
  bool lose_a_rank(uint64_t number) {
    failure_ += FailureTimes::gap(number);
    const auto due = begun_ + static_cast<int64_t>(std::max(failure_ - clock_, 0.0) / kStepSeconds);
    const auto is_due = [&] { return last_step(job_.metrics()).step >= due && launch_.ranks().size() == kRanks; };
    if (!wait_until(is_due)) return false;
    const auto ranks = launch_.ranks();
    before_ = last_step(job_.metrics());
    const auto start = Clock::now();
    ::kill(ranks.at(static_cast<size_t>(FailureTimes::rank(number, kRanks))), SIGKILL);
    if (!wait_until([&] { return have_others_begun(ranks); })) return false;
    const double detection = seconds_since(start);
    if (!wait_until([&] { return has_made_a_step(); })) return false;
    note(detection, seconds_since(start) - detection);
    return true;
  }

  MonthResult result() {
    launch_.require_success();
    clock_ += static_cast<double>(steps_ - begun_) * kStepSeconds;
    const double waited = checkpoint_seconds(job_.metrics());
    clock_ += waited;
    result_.steps = steps_;
    result_.days = clock_ / (24 * 3600);
    result_.effective = static_cast<double>(steps_) * kStepSeconds / clock_;
    result_.save_seconds = waited / std::max(std::floor(static_cast<double>(steps_) / kInterval), 1.0);
    const auto kills = static_cast<double>(std::max<int64_t>(result_.kills, 1));
    result_.detection_seconds /= kills, result_.restart_seconds /= kills;
    return result_;
  }

  std::string last() const { return last_; }

 private:
  template <class Condition>
  bool wait_until(const Condition& condition) {
    while (!condition()) {
      if (!launch_.runs()) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return true;
  }

  /// Meanwhile the ranks that are left may still make a step.
  bool have_others_begun(const std::vector<pid_t>& old) {
    before_.step = std::max(before_.step, last_step(job_.metrics()).step);
    const auto now = launch_.ranks();
    const auto is_old = [&](pid_t rank) { return std::find(old.begin(), old.end(), rank) != old.end(); };
    return now.size() == kRanks && std::none_of(now.begin(), now.end(), is_old);
  }

  /// The run that goes on puts another file in the place of the one that has steps to be made again.
  bool has_made_a_step() {
    const auto now = last_step(job_.metrics());
    if (!resumed_ && now.file != before_.file) resumed_ = now.step;
    if (!resumed_ && now.step > before_.step) resumed_ = before_.step;
    return resumed_ && now.step > *resumed_;
  }

  void note(double detection, double restart) {
    clock_ = std::max(failure_, clock_ + static_cast<double>(before_.step - begun_) * kStepSeconds);
    clock_ += detection + restart;
    begun_ = *std::exchange(resumed_, std::nullopt);
    ++result_.kills;
    result_.lost_steps += before_.step - begun_;
    result_.detection_seconds += detection, result_.restart_seconds += restart;
    last_ = fmt::format("day {:.2f}: lost at step {}, went on behind step {} after {:.2f} s", clock_ / (24 * 3600),
                        before_.step, begun_, detection + restart);
  }

  const TinyJob& job_;
  int64_t steps_;
  WatchedLaunch launch_;
  double clock_ = 0, failure_ = 0;  ///< virtual seconds: now, and when the next one is lost
  int64_t begun_ = 0;               ///< the step that the clock's now stands behind
  LastStep before_;                 ///< when the rank was lost
  std::optional<int64_t> resumed_;
  MonthResult result_;
  std::string last_;
};

}  // namespace

MonthResult measure_month(int64_t kills, const std::function<void(const std::string&)>& report) {
  ::setenv("OMP_NUM_THREADS", "1", /*overwrite=*/1);
  const auto steps = static_cast<int64_t>(static_cast<double>(kills) * FailureTimes::kMeanGap / kStepSeconds);
  const TinyJob job(steps);
  report(fmt::format("{} steps that nobody disturbs", steps));
  WatchedLaunch(job.training("alone"), job.file("alone.log")).require_success();
  report(fmt::format("the same steps on {} ranks, of which one is lost now and then", kRanks));
  Month month(job, steps, 2 * kills);
  for (uint64_t number = 1; month.lose_a_rank(number); ++number) report(month.last());
  auto result = month.result();
  const auto disturbed = job.result("out");
  result.restarts = static_cast<int64_t>(disturbed.value("restarts", nlohmann::json::array()).size());
  result.digest_equal = disturbed.at("state_digest") == job.result("alone").at("state_digest");
  return result;
}

}  // namespace lockstep::bench
