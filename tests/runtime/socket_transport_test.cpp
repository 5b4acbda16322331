// Sockets between ranks: every collective of a training step over them gives what one process gives; strangers, silence
// and a rank that is gone end in an error that says who.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <thread>

#include "core/error.h"
#include "runtime/transport/connect.h"
#include "runtime/transport/handshake.h"
#include "runtime/transport/socket.h"

namespace lockstep {
namespace {

using std::chrono::milliseconds;

std::array<FileDescriptor, 2> socket_pair() {
  int ends[2];
  LOCKSTEP_CHECK(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
  return {FileDescriptor(ends[0]), FileDescriptor(ends[1])};
}

std::vector<FileDescriptor> beside(int rank, FileDescriptor other) {
  std::vector<FileDescriptor> sockets(2);
  sockets[static_cast<size_t>(1 - rank)] = std::move(other);
  return sockets;
}

Message message_of(int source, uint64_t number, size_t bytes) {
  Message message{source, 1 - source, {.collective = number, .bytes = bytes}, Bytes(bytes)};
  for (size_t i = 0; i < bytes; ++i) message.payload[i] = static_cast<std::byte>(i * 31 + number);
  return message;
}

Message wait_for(SocketTransport& transport, int source, int destination) {
  Message message;
  while (!transport.take(source, destination, message)) transport.progress();
  return message;
}

template <class Action>
std::string problem(const Action& action) {
  try {
    action();
    return "";
  } catch (const TransportError& error) {
    return error.what();
  }
}

TEST(SocketTransport, CarriesMessagesOfAnySizeInOrder) {
  auto [left, right] = socket_pair();
  SocketTransport zero(0, beside(0, std::move(left)), milliseconds{5000});
  SocketTransport one(1, beside(1, std::move(right)), milliseconds{5000});
  const size_t sizes[] = {0, 1, 47, 48, 49, 4096, 5'000'001, 3};
  std::thread sender([&] {
    for (size_t i = 0; i < std::size(sizes); ++i) zero.post(message_of(0, i, sizes[i]));
    wait_for(zero, 1, 0);  // lets the rest out
  });
  for (size_t i = 0; i < std::size(sizes); ++i) {
    const auto got = wait_for(one, 0, 1), sent = message_of(0, i, sizes[i]);
    EXPECT_EQ(got.header, sent.header);
    EXPECT_EQ(got.payload, sent.payload);
  }
  one.post(message_of(1, 0, 10));
  sender.join();
}

TEST(SocketTransport, BothSidesMaySendMoreThanTheSystemBuffers) {
  auto [left, right] = socket_pair();
  SocketTransport zero(0, beside(0, std::move(left)), milliseconds{5000});
  SocketTransport one(1, beside(1, std::move(right)), milliseconds{5000});
  const auto run = [](SocketTransport& mine, int rank) {
    mine.post(message_of(rank, 7, 20'000'000));
    EXPECT_EQ(wait_for(mine, 1 - rank, rank).payload.size(), 20'000'000U);
    while (mine.is_sending()) mine.progress();
  };
  std::thread other([&] { run(one, 1); });
  run(zero, 0);
  other.join();
}

TEST(SocketTransport, WhatIsLeftIsSentAtTheEnd) {
  auto [left, right] = socket_pair();
  SocketTransport one(1, beside(1, std::move(right)), milliseconds{5000});
  std::thread sender([socket = std::move(left)]() mutable {
    SocketTransport zero(0, beside(0, std::move(socket)), milliseconds{5000});
    zero.post(message_of(0, 1, 8'000'000));
  });
  EXPECT_EQ(wait_for(one, 0, 1).payload.size(), 8'000'000U);
  sender.join();
  EXPECT_EQ(problem([&] { wait_for(one, 0, 1); }),
            "rank 1 waits for rank 0, whose connection is gone: it was closed by the other side");
}

TEST(SocketTransport, SilenceEndsInAnErrorThatSaysWhose) {
  auto [left, right] = socket_pair();
  SocketTransport zero(0, beside(0, std::move(left)), milliseconds{300});
  EXPECT_EQ(problem([&] { wait_for(zero, 1, 0); }),
            "rank 0 has waited 0 s for rank 1, which sends and takes nothing: it is stopped, or busy elsewhere");
}

TEST(SocketTransport, APeerThatTakesNothingEndsInAnErrorToo) {
  auto [left, right] = socket_pair();
  SocketTransport zero(0, beside(0, std::move(left)), milliseconds{300});
  zero.post(message_of(0, 0, 8'000'000));
  const auto what = problem([&] {
    while (zero.is_sending()) zero.progress();
  });
  EXPECT_NE(what.find("for rank 1, which sends and takes nothing"), what.npos) << what;
}

TEST(SocketTransport, RefusesWhatIsNoMessage) {
  auto [left, right] = socket_pair();
  SocketTransport zero(0, beside(0, std::move(left)), milliseconds{2000});
  const Bytes noise(200, std::byte{0x5a});
  ASSERT_EQ(::send(right.get(), noise.data(), noise.size(), 0), 200);
  EXPECT_EQ(problem([&] { wait_for(zero, 1, 0); }), "rank 1 sent rank 0 what is no message");
}

TEST(Frame, KeepsEveryFieldAndRefusesOthers) {
  const MessageHeader header{~uint64_t{1}, 7, 3, -1, uint64_t{1} << 63, 12345, 99};
  auto frame = to_frame(header);
  EXPECT_EQ(from_frame(frame), header);
  for (const size_t place : {0, 3, 29, 42, 47}) {
    auto other = frame;
    other[place] ^= std::byte{0x80};
    EXPECT_FALSE(from_frame(other)) << place;
  }
}

/// Ranks of threads that meet on loopback.
struct Meeting {
  explicit Meeting(int world) {
    for (int rank = 0; rank < world; ++rank) {
      addresses.emplace_back();
      listeners.push_back(listen_on({"127.0.0.1", 0}, addresses.back()));
    }
  }
  std::string join(int rank, const std::string& token, milliseconds timeout = milliseconds{8000}) {
    return problem([&] {
      const Membership membership{rank, static_cast<int>(addresses.size()), token, timeout};
      auto sockets = connect_ranks(membership, listeners[static_cast<size_t>(rank)],
                                   [&](int other) { return addresses[static_cast<size_t>(other)]; });
      SocketTransport transport(rank, std::move(sockets), timeout);
      for (int other = 0; other < membership.world; ++other)
        if (other != rank) transport.post({rank, other, {.collective = 5, .bytes = 1}, Bytes(1, std::byte(rank))});
      for (int other = 0; other < membership.world; ++other) {
        if (other == rank) continue;
        EXPECT_EQ(wait_for(transport, other, rank).payload[0], std::byte(other));
      }
    });
  }
  std::vector<Address> addresses;
  std::vector<FileDescriptor> listeners;
};

TEST(ConnectRanks, EveryPairIsConnected) {
  Meeting meeting(5);
  std::vector<std::string> errors(5);
  std::vector<std::thread> threads;
  for (int rank = 4; rank >= 0; --rank)
    threads.emplace_back([&, rank] { errors[static_cast<size_t>(rank)] = meeting.join(rank, "a secret of this job"); });
  for (auto& thread : threads) thread.join();
  for (const auto& error : errors) EXPECT_EQ(error, "");
}

FileDescriptor knock(const Address& address) {
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_port = htons(address.port);
  name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  FileDescriptor socket(::socket(AF_INET, SOCK_STREAM, 0));
  LOCKSTEP_CHECK(::connect(socket.get(), reinterpret_cast<sockaddr*>(&name), sizeof name) == 0);
  return socket;
}

TEST(ConnectRanks, StrangersAreSentAwayAndKeepNobodyWaiting) {
  Meeting meeting(2);
  std::vector<FileDescriptor> strangers;
  for (int i = 0; i < 20; ++i) strangers.push_back(knock(meeting.addresses[0]));
  const Bytes noise(1000, std::byte{0x17});
  const auto hello = to_bytes({2, 1, fresh_nonce()});
  for (size_t i = 0; i < 10; ++i) ::send(strangers[i].get(), noise.data(), noise.size(), MSG_NOSIGNAL);
  for (size_t i = 10; i < 15; ++i) {  // knows the protocol, but not the token
    ::send(strangers[i].get(), hello.data(), hello.size(), MSG_NOSIGNAL);
    ::send(strangers[i].get(), noise.data(), 32, MSG_NOSIGNAL);
  }
  std::string error;
  std::thread other([&] { error = meeting.join(1, "a secret of this job"); });
  EXPECT_EQ(meeting.join(0, "a secret of this job"), "");
  other.join();
  EXPECT_EQ(error, "");
}

TEST(ConnectRanks, AnotherJobsTokenIsRefused) {
  Meeting meeting(2);
  std::string error;
  std::thread other([&] { error = meeting.join(1, "the secret of another", milliseconds{700}); });
  EXPECT_EQ(meeting.join(0, "a secret of this job", milliseconds{700}), "rank 0: rank 1 did not connect in time");
  other.join();
  EXPECT_EQ(error,
            fmt::format("rank 1 could not connect to rank 0 at {}: nobody there proves that it belongs to this job",
                        meeting.addresses[0].text()));
}

TEST(ParseAddress, RefusesWhatIsNone) {
  EXPECT_EQ(parse_address("host:80").port, 80);
  for (const char* text : {"", ":", "host", "host:", ":80", "host:99999", "host:8x"})
    EXPECT_THROW(parse_address(text), BadInput) << text;
  EXPECT_THROW(parse_address(std::string(300, 'a') + ":1"), BadInput);
}

}  // namespace
}  // namespace lockstep
