#include "fuzz/search/workers.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "core/error.h"

namespace lockstep::fuzz {
namespace {

void write_line(int descriptor, const nlohmann::json& json) {
  const auto line = json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  for (size_t done = 0; done < line.size();) {
    const auto count = ::write(descriptor, line.data() + done, line.size() - done);
    if (count <= 0) return;  // the parent is gone
    done += static_cast<size_t>(count);
  }
}

}  // namespace

Workers::Workers(Board& board, const Checks& checks, const SearchOptions& options, Clock::time_point end, Report report)
    : board_(board),
      checks_(checks),
      options_(options),
      end_(end),
      report_(std::move(report)),
      processes_(static_cast<size_t>(options.workers)) {
  for (size_t worker = 0; worker < processes_.size(); ++worker) start(worker, static_cast<int64_t>(worker));
}

Workers::~Workers() {
  for (auto& process : processes_)
    if (process.id > 0) ::kill(process.id, SIGKILL), ::waitpid(process.id, nullptr, 0);
}

void Workers::start(size_t worker, int64_t first) {
  int ends[2];
  LOCKSTEP_CHECK(::pipe2(ends, O_CLOEXEC) == 0, "pipe: {}", std::strerror(errno));
  auto& process = processes_[worker];
  process = {};
  process.reports.reset(ends[0]);
  const FileDescriptor theirs(ends[1]);
  board_.worker(worker).turn = -1;
  process.id = ::fork();
  LOCKSTEP_CHECK(process.id >= 0, "fork: {}", std::strerror(errno));
  if (process.id == 0) run_child(worker, first, theirs.get());
  ::fcntl(process.reports.get(), F_SETFL, O_NONBLOCK);
}

void Workers::run_child(size_t worker, int64_t first, int reports) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::signal(SIGINT, SIG_IGN);  // the parent tells when to stop
  try {
    const Share share{worker, first, options_.workers, end_};
    work(board_, checks_, options_, share, [&](size_t check, int64_t number, const FoundFailure& failure) {
      write_line(reports,
                 {{"check", check}, {"number", number}, {"case", to_text(failure.name)}, {"message", failure.message}});
    });
    ::_exit(0);
  } catch (const std::exception& error) {
    write_line(reports, {{"error", error.what()}});
    ::_exit(1);
  }
}

void Workers::take(const std::string& line) {
  const auto json = nlohmann::json::parse(line);
  if (json.contains("error")) fail<InternalError>("a worker of the search ended: {}", json["error"].get<std::string>());
  report_(json["check"].get<size_t>(), json["number"].get<int64_t>(),
          {parse_case_name(json["case"].get<std::string>()), json["message"].get<std::string>()});
}

void Workers::read_reports(Process& process) {
  char block[4096];
  for (ssize_t count; (count = ::read(process.reports.get(), block, sizeof block)) > 0;)
    process.text.append(block, static_cast<size_t>(count));
  for (size_t end; (end = process.text.find('\n')) != std::string::npos;) {
    const auto line = process.text.substr(0, end);
    process.text.erase(0, end + 1);
    take(line);
  }
}

void Workers::blame_case(size_t worker, const std::string& message) {
  const auto at = board_.worker(worker).turn.load();
  if (at < 0) fail<InternalError>("a worker of the search ended before its first case: {}", message);
  const auto turn = turn_of(at, checks_.size());
  if (!lower(board_.tallies()[turn.check].first_failed, turn.number)) return;
  report_(turn.check, turn.number, {nth_case(checks_[turn.check].name, options_.seed, turn.number), message});
}

void Workers::end_if_overdue(size_t worker) {
  const auto& seen = board_.worker(worker);
  if (seen.turn < 0 || processes_[worker].overdue) return;
  const auto since = Clock::time_point(Clock::duration(seen.since.load()));
  if (Clock::now() - since < std::chrono::duration<double>(options_.case_seconds + options_.shrink_seconds)) return;
  processes_[worker].overdue = true;
  ::kill(processes_[worker].id, SIGKILL);
}

void Workers::reap(size_t worker) {
  auto& process = processes_[worker];
  int status = 0;
  if (::waitpid(process.id, &status, WNOHANG) != process.id) return;
  read_reports(process);
  process.id = -1;
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return;
  const auto at = board_.worker(worker).turn.load();
  blame_case(worker, process.overdue       ? fmt::format("no end within {:g} s", options_.case_seconds)
                     : WIFSIGNALED(status) ? fmt::format("the process dies of {}", ::strsignal(WTERMSIG(status)))
                                           : fmt::format("the process exits with {}", WEXITSTATUS(status)));
  start(worker, at + options_.workers);
}

bool Workers::attend() {
  bool any = false;
  for (size_t worker = 0; worker < processes_.size(); ++worker) {
    if (processes_[worker].id <= 0) continue;
    read_reports(processes_[worker]);
    end_if_overdue(worker);
    reap(worker);
    any |= processes_[worker].id > 0;
  }
  return any;
}

}  // namespace lockstep::fuzz
