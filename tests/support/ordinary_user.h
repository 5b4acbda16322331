#pragma once
#include <sys/fsuid.h>
#include <unistd.h>

#include <thread>

namespace lockstep::testing {

/// Runs `action` with an ordinary user's rights to files, also where the tests run as root, who has all. On a thread of
/// its own: these rights are a thread's.
template <class Action>
void as_ordinary_user(const Action& action) {
  std::thread([&] {
    constexpr uid_t kNobody = 65534;
    if (::geteuid() == 0) ::setfsuid(kNobody);
    action();
  }).join();
}

}  // namespace lockstep::testing
