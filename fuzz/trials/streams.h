#pragma once
#include <sys/socket.h>

#include <array>
#include <chrono>

#include "core/error.h"
#include "runtime/transport/shared_memory/memory_stream.h"
#include "runtime/transport/streams/shared_tensors.h"
#include "runtime/transport/streams/socket_stream.h"
#include "runtime/transport/streams/stream_transport.h"

/// Ranks of one process that talk over the streams that processes use.
namespace lockstep::testing {

/// kShared: memory, and large tensors are read where they lie.
enum class StreamKind { kSocket, kMemory, kShared };

inline std::array<FileDescriptor, 2> socket_pair() {
  int ends[2];
  LOCKSTEP_CHECK(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
  return {FileDescriptor(ends[0]), FileDescriptor(ends[1])};
}

/// Both ends of one.
inline std::array<std::unique_ptr<Stream>, 2> stream_pair(StreamKind kind) {
  auto [left, right] = socket_pair();
  if (kind == StreamKind::kSocket)
    return {std::make_unique<SocketStream>(std::move(left)), std::make_unique<SocketStream>(std::move(right))};
  const auto memory = create_pair_memory();
  const auto* arena = kind == StreamKind::kShared ? share_tensors() : nullptr;
  return {std::make_unique<MemoryStream>(std::move(left), memory, 0, arena),
          std::make_unique<MemoryStream>(std::move(right), memory, 1, arena)};
}

/// A transport for each rank of a world in which every pair has a stream.
inline std::vector<std::shared_ptr<StreamTransport>> connected_transports(int world, StreamKind kind,
                                                                          std::chrono::milliseconds timeout) {
  std::vector<std::vector<std::unique_ptr<Stream>>> streams(static_cast<size_t>(world));
  for (auto& row : streams) row.resize(streams.size());
  for (size_t low = 0; low < streams.size(); ++low)
    for (size_t high = low + 1; high < streams.size(); ++high) {
      auto pair = stream_pair(kind);
      streams[low][high] = std::move(pair[0]);
      streams[high][low] = std::move(pair[1]);
    }
  std::vector<std::shared_ptr<StreamTransport>> transports;
  for (int rank = 0; rank < world; ++rank)
    transports.push_back(
        std::make_shared<StreamTransport>(rank, std::move(streams[static_cast<size_t>(rank)]), timeout));
  return transports;
}

/// A message of collective `number`, whose bytes depend on it.
inline Message message_of(int source, int destination, uint64_t number, size_t bytes) {
  Bytes content(bytes);
  for (size_t i = 0; i < bytes; ++i) content[i] = static_cast<std::byte>(i * 31 + number);
  return {source, destination, {.collective = number, .bytes = bytes}, Payload::of(std::move(content))};
}

struct Received {
  MessageHeader header;
  Bytes bytes;
};

/// Waits for the next message.
inline Received wait_for(Transport& transport, int source, int destination) {
  std::optional<MessageHeader> header;
  while (!(header = transport.arrived(source, destination))) transport.progress();
  Received received{*header, Bytes(header->bytes)};
  const MutableSpan parts[] = {received.bytes};
  while (!transport.receive(source, destination, parts)) transport.progress();
  return received;
}

/// What a TransportError of `action` says; "" if there is none.
template <class Action>
std::string problem(const Action& action) {
  try {
    action();
    return "";
  } catch (const TransportError& error) {
    return error.what();
  }
}

}  // namespace lockstep::testing
