#pragma once
#include <future>
#include <torch/csrc/distributed/c10d/HashStore.hpp>

#include "runtime/transport/process_group/gloo_streams.h"
#include "runtime/transport/streams/stream_transport.h"

namespace lockstep::testing {

inline Membership member_of_gloo(int rank, int world, std::string token = "of-a-test-of-gloo") {
  return {rank, world, std::move(token), std::chrono::seconds(20), Carrier::kGloo};
}

/// Ranks of one process that talk over Gloo.
inline std::vector<std::shared_ptr<StreamTransport>> gloo_transports(int world, std::chrono::milliseconds timeout) {
  const auto store = c10::make_intrusive<c10d::HashStore>();
  std::vector<std::future<std::vector<std::unique_ptr<Stream>>>> connected;
  for (int rank = 0; rank < world; ++rank)
    connected.push_back(
        std::async(std::launch::async, [=] { return gloo_streams(member_of_gloo(rank, world), store, "127.0.0.1"); }));
  std::vector<std::shared_ptr<StreamTransport>> transports;
  for (int rank = 0; rank < world; ++rank)
    transports.push_back(std::make_shared<StreamTransport>(rank, connected[static_cast<size_t>(rank)].get(), timeout));
  return transports;
}

}  // namespace lockstep::testing
