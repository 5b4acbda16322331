#pragma once
#include <chrono>
#include <string>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

namespace lockstep {

using ProcessGroup = c10::intrusive_ptr<c10d::Backend>;

/// BadInput where GLOO_DEVICE_TRANSPORT asks for another device than TCP: LibTorch 2.11 makes one for TLS, and then
/// sends in the clear all the same.
void require_gloo_by_tcp();

/// c10d's Gloo, which connects each rank to each other before this returns; a rank listens on `host`. Every rank calls
/// it. From now on the process ignores SIGPIPE. Throws TransportError.
ProcessGroup gloo_group(const c10::intrusive_ptr<c10d::Store>& store, int rank, int world, const std::string& host,
                        std::chrono::milliseconds timeout);

}  // namespace lockstep
