// The wheel has ProcessGroupGloo and not the headers of Gloo that its header names. Debian's are of another version,
// which does not matter: nothing of Gloo is held here but pointers that c10d made.
#include "runtime/transport/process_group/gloo_group.h"

#include <csignal>
#include <cstdlib>
#include <string_view>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include "core/error.h"
#include "runtime/transport/process_group/plain_reason.h"

namespace lockstep {
namespace {

/// Gloo writes to connections that were closed.
void ignore_broken_pipes() { std::signal(SIGPIPE, SIG_IGN); }

ProcessGroup made(const c10::intrusive_ptr<c10d::Store>& store, int rank, int world, const std::string& host,
                  std::chrono::milliseconds timeout) {
  using Gloo = c10d::ProcessGroupGloo;
  const auto options = Gloo::Options::create(timeout);
  options->devices.push_back(Gloo::createDeviceForHostname(host, /*lazyInit=*/false));
  options->threads = 1;  // of collectives, which are not used
  return c10::make_intrusive<Gloo>(store, rank, world, options);
}

}  // namespace

void require_gloo_by_tcp() {
  const char* device = std::getenv("GLOO_DEVICE_TRANSPORT");
  if (device && std::string_view(device) != "TCP")
    fail<BadInput>(
        "environment: GLOO_DEVICE_TRANSPORT is \"{}\": over this LibTorch's Gloo bytes travel by TCP and in the clear, "
        "whatever it says. Unset it, and encrypt the network below (WireGuard, IPsec) where it is not trusted.",
        device);
}

ProcessGroup gloo_group(const c10::intrusive_ptr<c10d::Store>& store, int rank, int world, const std::string& host,
                        std::chrono::milliseconds timeout) {
  ignore_broken_pipes();
  try {
    return made(store, rank, world, host, timeout);
  } catch (const std::exception& error) {
    fail<TransportError>("rank {} cannot meet the others over Gloo: {}", rank, plain_reason(error));
  }
}

}  // namespace lockstep
