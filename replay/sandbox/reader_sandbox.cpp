#include "replay/sandbox/reader_sandbox.h"

#include <fcntl.h>
#include <malloc.h>
#include <seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <csignal>
#include <fstream>
#include <memory>
#include <system_error>

#include "core/error.h"
#include "core/sanitized.h"

namespace lockstep::replay {
namespace {

/// `result` is 0 if it went well, as system calls have it.
void require(int result, std::string_view what) {
  if (result == 0) return;
  fail<FileError>("cannot be read safely: {}: {}", what, std::generic_category().message(errno));
}

void limit(decltype(RLIMIT_AS) what, uint64_t soft, uint64_t hard) {
  const rlimit limits{soft, hard};
  require(::setrlimit(what, &limits), "setrlimit");
}

/// Address space in use, in bytes.
uint64_t address_space() {
  uint64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
}

void limit_resources(const ReaderLimits& limits) {
  // Sanitizers reserve terabytes of addresses, and more as they go.
  if (!kSanitized) limit(RLIMIT_AS, address_space() + limits.memory, address_space() + limits.memory);
  limit(RLIMIT_CPU, limits.processor_seconds, limits.processor_seconds + 1);
  limit(RLIMIT_CORE, 0, 0);
}

/// Crashes are crashes, whatever the parent does about them; Ctrl-C is for the parent.
void reset_signals() {
  for (const int crash : {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGXCPU}) ::signal(crash, SIG_DFL);
  for (const int wish : {SIGINT, SIGTERM, SIGHUP}) ::signal(wish, SIG_IGN);
  require(::prctl(PR_SET_PDEATHSIG, SIGKILL), "prctl");
  require(::prctl(PR_SET_DUMPABLE, 0), "prctl");
}

void close_all_but(int pipe) {
  const auto kept = static_cast<unsigned>(pipe);
  if (kept > 0) require(::close_range(0, kept - 1, 0), "close_range");
  require(::close_range(kept + 1, ~0U, 0), "close_range");
}

using Filter = std::unique_ptr<void, decltype(&seccomp_release)>;

template <class... Conditions>
void add_rule(const Filter& filter, uint32_t action, int call, Conditions... conditions) {
  const int result = seccomp_rule_add(filter.get(), action, call, sizeof...(conditions), conditions...);
  errno = -result;
  require(result, "seccomp");
}

template <class... Conditions>
void allow(const Filter& filter, int call, Conditions... conditions) {
  add_rule(filter, SCMP_ACT_ALLOW, call, conditions...);
}

/// What a sanitizer asks for when an exception is thrown: it tries through a pipe whether memory can be read.
void allow_sanitizer(const Filter& filter) {
  for (const int call : {SCMP_SYS(sigaltstack), SCMP_SYS(pipe), SCMP_SYS(pipe2), SCMP_SYS(close), SCMP_SYS(write)})
    allow(filter, call);
}

/// Memory that holds no file, and code only where the work may make some.
void allow_memory(const Filter& filter, OtherCalls others) {
  const auto no_file = SCMP_A3(SCMP_CMP_MASKED_EQ, MAP_ANONYMOUS, MAP_ANONYMOUS);
  if (others == OtherCalls::kRefuse) {
    allow(filter, SCMP_SYS(mmap), no_file);
    return allow(filter, SCMP_SYS(mprotect));
  }
  const auto no_code = SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0);
  allow(filter, SCMP_SYS(mmap), no_code, no_file);
  allow(filter, SCMP_SYS(mprotect), no_code);
}

/// Memory, writing to the pipe, the end. No file exists: HDF5 makes sure that there is none of the name that it gives
/// to one in memory.
void filter_calls(OtherCalls others, int pipe) {
  const auto other = others == OtherCalls::kKill ? SCMP_ACT_KILL_PROCESS : SCMP_ACT_ERRNO(EPERM);
  const Filter filter(seccomp_init(other), &seccomp_release);
  if (!filter) require(-1, "seccomp");
  allow_memory(filter, others);
  for (const int call :
       {SCMP_SYS(brk), SCMP_SYS(munmap), SCMP_SYS(mremap), SCMP_SYS(madvise), SCMP_SYS(futex), SCMP_SYS(clock_gettime),
        SCMP_SYS(gettimeofday), SCMP_SYS(exit), SCMP_SYS(exit_group), SCMP_SYS(rt_sigreturn)})
    allow(filter, call);
  allow(filter, SCMP_SYS(write), scmp_arg_cmp{0, SCMP_CMP_EQ, static_cast<scmp_datum_t>(pipe), 0});
  if (kSanitized) allow_sanitizer(filter);
  for (const int call : {SCMP_SYS(open), SCMP_SYS(openat)}) add_rule(filter, SCMP_ACT_ERRNO(ENOENT), call);
  const int result = seccomp_load(filter.get());
  errno = -result;
  require(result, "seccomp");
}

}  // namespace

void enter_sandbox(const ReaderLimits& limits, int pipe) {
  // Else freeing memory of a thread's arena reads /proc/sys/vm/overcommit_memory.
  ::mallopt(M_TRIM_THRESHOLD, INT_MAX);
  limit_resources(limits);
  reset_signals();
  close_all_but(pipe);
  filter_calls(limits.others, pipe);
}

}  // namespace lockstep::replay
