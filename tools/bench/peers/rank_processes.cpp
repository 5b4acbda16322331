#include "tools/bench/peers/rank_processes.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <csignal>
#include <map>
#include <string>

#include "core/error.h"
#include "runtime/transport/rendezvous/address.h"
#include "runtime/transport/rendezvous/handshake.h"

namespace lockstep::bench {
namespace {

struct Meeting {
  int count;
  uint16_t port;
  std::string token;
};

/// What a launcher would tell this rank.
trainer::Environment environment_of(int rank, const Meeting& meeting) {
  std::map<std::string, std::string, std::less<>> variables{
      {"RANK", std::to_string(rank)},       {"WORLD_SIZE", std::to_string(meeting.count)},
      {"LOCAL_RANK", std::to_string(rank)}, {"LOCAL_WORLD_SIZE", std::to_string(meeting.count)},
      {"MASTER_ADDR", "127.0.0.1"},         {"MASTER_PORT", std::to_string(meeting.port)},
      {"LOCKSTEP_JOB_TOKEN", meeting.token}};
  return [variables = std::move(variables)](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  };
}

trainer::Processes join(int rank, const Meeting& meeting) {
  const auto variable = environment_of(rank, meeting);
  return trainer::join_processes(trainer::detect_launcher(variable), variable, trainer::CommSection{}, {});
}

/// The rank-th of the cores that this process may use; all of them where there are fewer.
void keep_to_core(int rank, int count) {
  cpu_set_t allowed, mine;
  CPU_ZERO(&allowed);
  CPU_ZERO(&mine);
  ::sched_getaffinity(0, sizeof allowed, &allowed);
  if (CPU_COUNT(&allowed) < count) return;
  for (int core = 0, seen = 0; core < CPU_SETSIZE; ++core)
    if (CPU_ISSET(core, &allowed) && seen++ == rank) CPU_SET(core, &mine);
  ::sched_setaffinity(0, sizeof mine, &mine);
}

/// Until rank 0 closes its end.
[[noreturn]] void follow(int commands, const Contender::Work& work) {
  char command = 0;
  while (::read(commands, &command, 1) == 1) work();
  ::_exit(0);
}

}  // namespace

RankProcesses::RankProcesses(int count, const std::function<Contender::Work(const trainer::Processes&)>& make) {
  Address address;
  auto port = listen_on({"127.0.0.1", 0}, address);  // one that is free
  port.reset();
  const Meeting meeting{count, address.port, to_hexadecimal(fresh_nonce())};
  for (int rank = 1; rank < count; ++rank) {
    int ends[2];
    LOCKSTEP_CHECK(::pipe2(ends, O_CLOEXEC) == 0);
    const pid_t child = ::fork();
    LOCKSTEP_CHECK(child >= 0, "a process cannot be started");
    if (child == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      commands_.clear();
      ::close(ends[1]);
      keep_to_core(rank, count);
      follow(ends[0], make(join(rank, meeting)));
    }
    ::close(ends[0]);
    commands_.emplace_back(ends[1]);
  }
  keep_to_core(0, count);
  work_ = make(join(0, meeting));
}

double RankProcesses::operator()() const {
  for (const auto& other : commands_) LOCKSTEP_CHECK(::write(other.get(), "\n", 1) == 1, "a rank has ended");
  return work_();
}

std::shared_ptr<Contender> in_processes(int count,
                                        const std::function<Contender::Work(const trainer::Processes&)>& make) {
  return Contender::fork(
      [&]() -> Contender::Work { return [all = std::make_shared<RankProcesses>(count, make)] { return (*all)(); }; });
}

}  // namespace lockstep::bench
