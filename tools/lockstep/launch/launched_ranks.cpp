#include "tools/lockstep/launch/launched_ranks.h"

#include <poll.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "core/interruption.h"
#include "runtime/transport/rendezvous/address.h"
#include "runtime/transport/rendezvous/handshake.h"

namespace lockstep::tool {
namespace {

using Variables = std::map<std::string, std::string>;

/// 32 random bytes.
std::string fresh_token() { return to_hexadecimal(fresh_nonce()) + to_hexadecimal(fresh_nonce()); }

/// What torchrun would set, and the job's token.
Variables variables_of(int rank, int64_t count, const Address& store, const std::string& token) {
  const auto text = [](auto number) { return std::to_string(number); };
  Variables variables{
      {"RANK", text(rank)},         {"LOCAL_RANK", text(rank)},        {"WORLD_SIZE", text(count)},
      {"MASTER_ADDR", store.host},  {"MASTER_PORT", text(store.port)}, {"LOCAL_WORLD_SIZE", text(count)},
      {"LOCKSTEP_JOB_TOKEN", token}};
  const auto cores = static_cast<int64_t>(std::thread::hardware_concurrency());
  if (!std::getenv("OMP_NUM_THREADS")) variables["OMP_NUM_THREADS"] = text(std::max<int64_t>(cores / count, 1));
  return variables;
}

/// "0, 2-7" of ascending numbers; of two in a row both.
std::string ranges_of(const std::vector<int>& ranks) {
  std::string text;
  for (size_t first = 0, last = 0; first < ranks.size(); first = ++last) {
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
    if (last == first + 1) --last;
    text += fmt::format("{}{}", text.empty() ? "" : ", ", ranks[first]);
    if (last > first) text += fmt::format("-{}", ranks[last]);
  }
  return text;
}

/// After these no other rank can do its part.
bool is_loss(ExitCode code) { return code == ExitCode::kTransport || code == ExitCode::kInternal; }

}  // namespace

LaunchedRanks::LaunchedRanks(const LaunchOptions& options, const std::vector<std::string>& more)
    : grace_(options.grace_seconds) {
  auto command = options.command;
  command.insert(command.begin(), std::filesystem::read_symlink("/proc/self/exe").string());
  command.insert(command.end(), more.begin(), more.end());
  Address store;
  const auto socket = listen_on({"127.0.0.1", 0}, store);
  const auto token = fresh_token();
  const auto world = static_cast<int>(options.processes);
  for (int rank = 0; rank < world; ++rank) {
    auto variables = variables_of(rank, world, store, token);
    std::vector<int> inherited;
    if (rank == 0) {  // it serves the store
      inherited.push_back(socket.get());
      variables["LOCKSTEP_STORE_SOCKET"] = std::to_string(socket.get());
    }
    ranks_.push_back(std::make_unique<RankProcess>(rank, world, command, std::move(variables), std::move(inherited)));
  }
}

void LaunchedRanks::wait(const std::function<bool()>& is_wanted_elsewhere) {
  while (any_runs()) {
    wait_for_news();
    for (auto& rank : ranks_) rank->poll();
    forward_signal();
    if (!forwarded_ && is_wanted_elsewhere()) call_back();
    note_failures();
    hurry();
  }
  for (auto& rank : ranks_) rank->poll();
}

ExitCode LaunchedRanks::code() const {
  auto result = ExitCode::kFine;
  for (const auto& rank : ranks_) {
    const auto mine = rank->code();
    if (mine != ExitCode::kFine && (result == ExitCode::kFine || result == ExitCode::kTransport)) result = mine;
  }
  return result;
}

std::string LaunchedRanks::reports() const {
  std::map<std::string, std::vector<int>> speakers;
  for (const auto& rank : ranks_) {
    if (rank->code() == ExitCode::kFine || rank->report().empty()) continue;
    speakers[rank->report()].push_back(rank->rank());
  }
  std::string text;
  for (const auto& [report, ranks] : speakers)
    text += fmt::format("rank {}: {}{}", ranges_of(ranks), report, report.ends_with('\n') ? "" : "\n");
  return text;
}

std::vector<RankStory> LaunchedRanks::stories() const {
  std::vector<RankStory> stories;
  for (const auto& rank : ranks_) stories.push_back(rank->story());
  return stories;
}

bool LaunchedRanks::any_runs() const {
  return std::any_of(ranks_.begin(), ranks_.end(), [](const auto& rank) { return rank->runs(); });
}

void LaunchedRanks::wait_for_news() const {
  std::vector<pollfd> events;
  for (const auto& rank : ranks_)
    if (rank->descriptor() >= 0) events.push_back({rank->descriptor(), POLLIN, 0});
  ::poll(events.data(), events.size(), 50);
}

/// Others would wait at the meeting for as long as comm.init_timeout_seconds says.
bool LaunchedRanks::one_left_before_the_meeting() const {
  return std::any_of(ranks_.begin(), ranks_.end(), [](const auto& rank) {
    return !rank->runs() && rank->code() == ExitCode::kInterrupted && !rank->has_begun();
  });
}

void LaunchedRanks::forward_signal() {
  if (forwarded_ || !(interruption_requested() || one_left_before_the_meeting())) return;
  forwarded_ = true;
  const int number = std::string_view(interruption_signal()) == "SIGINT" ? SIGINT : SIGTERM;
  for (const auto& rank : ranks_) rank->signal(number);
}

void LaunchedRanks::call_back() {
  forwarded_ = called_back_ = true;
  for (const auto& rank : ranks_) rank->signal(SIGTERM);
}

void LaunchedRanks::note_failures() {
  const auto since = [](std::optional<Clock::time_point>& time, bool happened) {
    if (happened && !time) time = Clock::now();
  };
  for (const auto& rank : ranks_) {
    const auto code = rank->runs() ? ExitCode::kFine : rank->code();
    since(failed_at_, code != ExitCode::kFine && code != ExitCode::kInterrupted);
    since(lost_at_, is_loss(code) || rank->has_given_up());
  }
}

void LaunchedRanks::hurry() {
  constexpr Seconds kToNotice{0.5}, kStopped{30};
  const auto is_over = [now = Clock::now()](const auto& start, Seconds time) { return start && now - *start > time; };
  const bool any_ended = std::any_of(ranks_.begin(), ranks_.end(), [](const auto& rank) { return !rank->runs(); });
  for (auto& rank : ranks_) {
    const bool unaware = !rank->is_ending() && is_over(lost_at_, std::min(kToNotice, grace_));
    // When others have ended nobody is left to give up on a rank that is stopped.
    const bool forgotten = rank->runs() && is_over(rank->stopped_since(), kStopped) && any_ended;
    if (unaware || forgotten || is_over(failed_at_, grace_) || is_over(lost_at_, grace_)) rank->end();
  }
}

}  // namespace lockstep::tool
