#include "tools/lockstep/launch/rank_process.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include "core/interruption.h"

namespace lockstep::tool {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kMostText = 64 << 10;  ///< of a rank's stderr, from its end

/// In the new process, before it becomes `command`: only calls that are safe after fork().
[[noreturn]] void become(char* const* command, pid_t parent, int errors, const std::vector<int>& inherited) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(static_cast<int>(ExitCode::kInterrupted));
  if (errors >= 0) {
    const int nothing = ::open("/dev/null", O_RDWR);
    ::dup2(nothing, STDIN_FILENO);
    ::dup2(nothing, STDOUT_FILENO);
    ::dup2(errors, STDERR_FILENO);
  }
  for (const int descriptor : inherited) ::fcntl(descriptor, F_SETFD, 0);
  ::execv(command[0], command);
  ::_exit(static_cast<int>(ExitCode::kInternal));
}

std::vector<char*> pointers(const std::vector<std::string>& words) {
  std::vector<char*> result;
  for (const auto& word : words) result.push_back(const_cast<char*>(word.c_str()));
  result.push_back(nullptr);
  return result;
}

}  // namespace

RankProcess::RankProcess(int rank, int world, const std::vector<std::string>& command,
                         std::map<std::string, std::string> variables, std::vector<int> inherited)
    : rank_(rank) {
  const auto memory = create_flight_memory();
  if (memory.is_open()) {
    record_ = std::make_unique<FlightRecord>(memory, world);
    inherited.push_back(memory.get());
    variables["LOCKSTEP_FLIGHT_MEMORY"] = std::to_string(memory.get());
  }
  FileDescriptor write_end;
  if (rank != 0) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) fail<TransportError>("a pipe cannot be made: {}", std::strerror(errno));
    errors_.reset(ends[0]);
    write_end.reset(ends[1]);
    ::fcntl(errors_.get(), F_SETFL, O_NONBLOCK);
  }
  // The environment is set here, not in the child, where little is allowed.
  for (const auto& [name, value] : variables) ::setenv(name.c_str(), value.c_str(), /*overwrite=*/1);
  const auto words = pointers(command);
  const pid_t parent = ::getpid();
  const InterruptionsBlocked until_it_runs;
  id_ = ::fork();
  if (id_ < 0) fail<TransportError>("rank {} cannot be started: {}", rank, std::strerror(errno));
  if (id_ == 0) become(words.data(), parent, write_end.get(), inherited);
}

RankProcess::~RankProcess() {
  if (id_ < 0 || !runs()) return;
  ::kill(id_, SIGKILL);
  ::waitpid(id_, nullptr, 0);
}

void RankProcess::signal(int number) const {
  if (runs()) ::kill(id_, number);
}

void RankProcess::end() {
  if (!runs()) return;
  ended_by_us_ = true;
  signal(SIGKILL);
}

void RankProcess::read_errors() {
  char block[4096];
  ssize_t count = 0;
  while (errors_.is_open() && (count = ::read(errors_.get(), block, sizeof block)) > 0)
    text_.append(block, static_cast<size_t>(count));
  if (errors_.is_open() && count == 0) errors_.reset();
  if (text_.size() > kMostText) text_.erase(0, text_.size() - kMostText);
}

/// Being stopped is news, too.
void RankProcess::read_status() {
  int status = 0;
  while (runs() && ::waitpid(id_, &status, WNOHANG | WUNTRACED | WCONTINUED) == id_) {
    if (WIFSTOPPED(status) || WIFCONTINUED(status)) {
      stopped_since_.reset();
      if (WIFSTOPPED(status)) stopped_since_ = Clock::now();
      continue;
    }
    status_ = status;
    ended_ = Clock::now();
  }
}

void RankProcess::poll() {
  read_status();
  read_errors();
}

ExitCode RankProcess::code() const {
  return WIFEXITED(*status_) ? static_cast<ExitCode>(WEXITSTATUS(*status_)) : ExitCode::kTransport;
}

std::string RankProcess::report() const {
  if (!WIFSIGNALED(*status_)) return text_;
  if (ended_by_us_) return "it did not end by itself after another had failed, and was ended";
  return fmt::format("killed by signal {} ({})", WTERMSIG(*status_), ::strsignal(WTERMSIG(*status_)));
}

RankStory RankProcess::story() const {
  RankStory story;
  story.rank = rank_;
  story.code = code();
  story.ended_by_launcher = ended_by_us_;
  story.signal = WIFSIGNALED(*status_) && !ended_by_us_ ? WTERMSIG(*status_) : 0;
  story.stopped = stopped_since_.has_value();
  story.ended = std::chrono::duration<double>(ended_.time_since_epoch()).count();
  if (story.code != ExitCode::kFine) story.error = report();
  if (!record_) return story;
  story.notes = record_->all();
  if (story.error.empty() && story.code != ExitCode::kFine) story.error = record_->error();  // rank 0 has our stderr
  return story;
}

}  // namespace lockstep::tool
