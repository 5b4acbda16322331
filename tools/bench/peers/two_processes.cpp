#include "tools/bench/peers/two_processes.h"

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <new>

#include "core/error.h"
#include "runtime/transport/rendezvous/address.h"
#include "runtime/transport/shared_memory/memory_stream.h"
#include "runtime/transport/streams/shared_tensors.h"
#include "runtime/transport/streams/socket_stream.h"

namespace lockstep::bench {
namespace {

struct Command {
  size_t index;
  int times;
};

using Both = std::array<FileDescriptor, 2>;

Both local_pair() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    fail<TransportError>("two sockets cannot be made: {}", std::strerror(errno));
  return {FileDescriptor(ends[0]), FileDescriptor(ends[1])};
}

Both tcp_pair() {
  Address address;
  const auto listener = listen_on({"127.0.0.1", 0}, address);
  Both both;
  both[0] = open_connection(address, std::chrono::steady_clock::now() + std::chrono::seconds{5});
  both[1].reset(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  for (const auto& socket : both) {
    if (!socket.is_open()) fail<TransportError>("no TCP connection on loopback");
    set_no_delay(socket);
  }
  return both;
}

std::span<std::byte> shared_bytes() {
  constexpr size_t kBytes = 2 * kSharedBytes + sizeof(Meetings);
  void* mapped = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) fail<TransportError>("no memory for two processes: {}", std::strerror(errno));
  return {static_cast<std::byte*>(mapped), kBytes};
}

cpu_set_t allowed_cores() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  ::sched_getaffinity(0, sizeof allowed, &allowed);
  return allowed;
}

/// Each process on a core of its own, where there are two: else the system may keep both on one.
void choose_core(const cpu_set_t& allowed, size_t rank) {
  if (CPU_COUNT(&allowed) < 2) return;
  cpu_set_t mine;
  size_t seen = 0;
  for (size_t core = 0; core < CPU_SETSIZE; ++core) {
    if (!CPU_ISSET(core, &allowed) || seen++ != rank) continue;
    CPU_ZERO(&mine);
    CPU_SET(core, &mine);
    ::sched_setaffinity(0, sizeof mine, &mine);
  }
}

}  // namespace

TwoProcesses::TwoProcesses(const std::function<Works(Ends)>& make) : all_cores_(allowed_cores()) {
  auto commands = local_pair(), bells = local_pair(), tcp = tcp_pair(), plain = tcp_pair(), unpaced = tcp_pair();
  const auto memory = create_pair_memory();
  const auto shared = shared_bytes();
  auto* meetings = new (shared.data() + 2 * kSharedBytes) Meetings{};
  for (const auto& socket : unpaced) set_unpaced_within_host(socket);
  const pid_t parent = ::getpid();
  child_ = ::fork();
  if (child_ < 0) fail<TransportError>("a second process cannot be started: {}", std::strerror(errno));
  const size_t rank = child_ == 0 ? 1 : 0;
  choose_core(all_cores_, rank);
  for (auto* both : {&commands, &bells, &tcp, &plain, &unpaced}) (*both)[1 - rank].reset();
  commands_ = std::move(commands[rank]);
  Ends ends{static_cast<int>(rank),
            std::make_unique<MemoryStream>(std::move(bells[rank]), memory, rank, share_tensors()),
            std::make_unique<SocketStream>(std::move(tcp[rank])),
            std::move(plain[rank]),
            std::move(unpaced[rank]),
            shared.subspan(rank * kSharedBytes, kSharedBytes),
            shared.subspan((1 - rank) * kSharedBytes, kSharedBytes),
            meetings};
  std::fill(ends.mine.begin(), ends.mine.end(), std::byte{1});
  works_ = make(std::move(ends));
  if (rank == 0) return;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() == parent) follow();
  ::_exit(0);
}

void TwoProcesses::follow() const {
  Command command{};
  while (::recv(commands_.get(), &command, sizeof command, MSG_WAITALL) == sizeof command)
    for (int i = 0; i < command.times; ++i) works_[command.index]();
  ::_exit(0);
}

void TwoProcesses::run(size_t index, int times) {
  const Command command{index, times};
  LOCKSTEP_CHECK(::send(commands_.get(), &command, sizeof command, MSG_NOSIGNAL) == sizeof command);
  for (int i = 0; i < times; ++i) works_[index]();
}

void TwoProcesses::run_alone(const std::function<void()>& work) const {
  ::sched_setaffinity(0, sizeof all_cores_, &all_cores_);
  work();
  choose_core(all_cores_, 0);
}

TwoProcesses::~TwoProcesses() {
  commands_.reset();
  ::waitpid(child_, nullptr, 0);
}

}  // namespace lockstep::bench
