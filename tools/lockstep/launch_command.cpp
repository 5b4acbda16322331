#include <poll.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <thread>

#include "core/interruption.h"
#include "runtime/transport/address.h"
#include "runtime/transport/handshake.h"
#include "tools/lockstep/commands.h"
#include "tools/lockstep/rank_process.h"

namespace lockstep::tool {
namespace {

using Clock = std::chrono::steady_clock;
using Variables = std::map<std::string, std::string>;

/// 32 random bytes.
std::string fresh_token() {
  std::string text;
  for (int half = 0; half < 2; ++half)
    for (const auto byte : fresh_nonce()) text += fmt::format("{:02x}", byte);
  return text;
}

/// What torchrun would set, the job's token, and the socket that rank 0 serves the store on.
Variables variables_of(int rank, int64_t count, const Address& store, const std::string& token, int socket) {
  const auto text = [](auto number) { return std::to_string(number); };
  Variables variables{{"RANK", text(rank)},
                      {"LOCAL_RANK", text(rank)},
                      {"WORLD_SIZE", text(count)},
                      {"MASTER_ADDR", store.host},
                      {"MASTER_PORT", text(store.port)},
                      {"LOCAL_WORLD_SIZE", text(count)},
                      {"LOCKSTEP_JOB_TOKEN", token},
                      {"LOCKSTEP_STORE_SOCKET", text(socket)}};
  const auto cores = static_cast<int64_t>(std::thread::hardware_concurrency());
  if (!std::getenv("OMP_NUM_THREADS")) variables["OMP_NUM_THREADS"] = text(std::max<int64_t>(cores / count, 1));
  return variables;
}

/// The ranks that a launch started, from the first to the last that ends.
class Ranks {
 public:
  Ranks(const LaunchOptions& options) : grace_(options.grace_seconds) {
    auto command = options.command;
    command.insert(command.begin(), std::filesystem::read_symlink("/proc/self/exe").string());
    Address store;
    const auto socket = listen_on({"127.0.0.1", 0}, store);
    const auto token = fresh_token();
    for (int rank = 0; rank < options.processes; ++rank)
      ranks_.push_back(std::make_unique<RankProcess>(rank, command,
                                                     variables_of(rank, options.processes, store, token, socket.get()),
                                                     rank == 0 ? socket.get() : -1));
  }

  /// Until all have ended. The first that fails gives the others `grace` to end by themselves.
  void wait() {
    const InterruptionHandler handler;
    while (any_runs()) {
      wait_for_news();
      for (auto& rank : ranks_) rank->poll();
      forward_signal();
      if (!failed_at_ && any_failed()) failed_at_ = Clock::now();
      if (failed_at_) hurry();
    }
    for (auto& rank : ranks_) rank->poll();
  }

  /// The most telling of all: a transport error is often only the echo of another rank's.
  ExitCode code() const {
    auto result = ExitCode::kFine;
    for (const auto& rank : ranks_) {
      const auto mine = rank->code();
      if (mine != ExitCode::kFine && (result == ExitCode::kFine || result == ExitCode::kTransport)) result = mine;
    }
    return result;
  }

  /// "ranks 1, 2: ..." for each different report of those that failed; rank 0 has spoken for itself.
  std::string reports() const {
    std::map<std::string, std::string> speakers;
    for (const auto& rank : ranks_) {
      if (rank->code() == ExitCode::kFine || rank->report().empty()) continue;
      auto& names = speakers[rank->report()];
      names += fmt::format("{}{}", names.empty() ? "" : ", ", rank->rank());
    }
    std::string text;
    for (const auto& [report, names] : speakers)
      text += fmt::format("rank {}: {}{}", names, report, report.ends_with('\n') ? "" : "\n");
    return text;
  }

 private:
  bool any_runs() const {
    return std::any_of(ranks_.begin(), ranks_.end(), [](const auto& rank) { return rank->runs(); });
  }
  bool any_failed() const {
    return std::any_of(ranks_.begin(), ranks_.end(),
                       [](const auto& rank) { return !rank->runs() && rank->code() != ExitCode::kFine; });
  }

  void wait_for_news() const {
    std::vector<pollfd> events;
    for (const auto& rank : ranks_)
      if (rank->descriptor() >= 0) events.push_back({rank->descriptor(), POLLIN, 0});
    ::poll(events.data(), events.size(), 50);
  }

  void forward_signal() {
    if (forwarded_ || !interruption_requested()) return;
    forwarded_ = true;
    const int number = std::string_view(interruption_signal()) == "SIGINT" ? SIGINT : SIGTERM;
    for (const auto& rank : ranks_) rank->signal(number);
  }

  void hurry() const {
    const auto late = std::chrono::duration<double>(Clock::now() - *failed_at_).count() - grace_;
    if (late < 0) return;
    for (const auto& rank : ranks_) rank->signal(late < 2 ? SIGTERM : SIGKILL);
  }

  std::vector<std::unique_ptr<RankProcess>> ranks_;
  double grace_;
  bool forwarded_ = false;
  std::optional<Clock::time_point> failed_at_;
};

}  // namespace

ExitCode run_launch(const LaunchOptions& options) {
  Ranks ranks(options);
  ranks.wait();
  const auto reports = ranks.reports();
  fmt::print(stderr, "{}", reports);
  return ranks.code();
}

}  // namespace lockstep::tool
