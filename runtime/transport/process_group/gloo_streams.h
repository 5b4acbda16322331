#pragma once
#include "runtime/transport/process_group/group_stream.h"
#include "runtime/transport/rendezvous/connect.h"

namespace lockstep {

/// Of one rank, over Gloo: a stream to each other, each of which has proved that it belongs to the job (handshake.h;
/// Gloo itself lets in who comes). Null for the rank itself. Every rank calls it. Throws TransportError naming who does
/// not prove it in time.
std::vector<std::unique_ptr<Stream>> gloo_streams(const Membership& me, const c10::intrusive_ptr<c10d::Store>& store,
                                                  const std::string& host);

/// Exchanges proofs with rank `other`: both ends call it. Throws TransportError.
void prove_membership(Stream& stream, const Membership& me, int other, std::chrono::steady_clock::time_point end);

}  // namespace lockstep
