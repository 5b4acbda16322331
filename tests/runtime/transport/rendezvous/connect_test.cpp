// How ranks meet: every pair gets a connection, with memory where that is possible; strangers, silence and a rank that
// is not there end in an error that says who.
#include "runtime/transport/rendezvous/connect.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

#include <thread>

#include "core/files/pass_descriptor.h"
#include "fuzz/trials/streams.h"
#include "runtime/transport/rendezvous/handshake.h"

namespace lockstep {
namespace {

using std::chrono::milliseconds;
using testing::problem;
using Clock = std::chrono::steady_clock;

/// Ranks of threads that meet on this machine.
struct Meeting {
  explicit Meeting(int world, Carrier meant = Carrier::kTcp) : carrier(meant) {
    for (int rank = 0; rank < world; ++rank) {
      reaches.emplace_back();
      listeners.push_back(listen_for(carrier, {"127.0.0.1", 0}, reaches.back()));
    }
  }
  /// The connections of one rank; `error` says why there are none.
  std::vector<Connection> connect(int rank, const std::string& token, std::string& error,
                                  milliseconds timeout = milliseconds{8000}) const {
    std::vector<Connection> connections;
    error = problem([&] {
      const Membership membership{rank, static_cast<int>(reaches.size()), token, timeout, carrier};
      connections = connect_ranks(membership, listeners[static_cast<size_t>(rank)],
                                  [&](int other) { return reaches[static_cast<size_t>(other)]; });
    });
    return connections;
  }
  /// Meets, and checks that the right rank is at the end of every connection.
  std::string join(int rank, const std::string& token, milliseconds timeout = milliseconds{8000}) const {
    std::string error;
    const auto connections = connect(rank, token, error, timeout);
    for (size_t other = 0; error.empty() && other < connections.size(); ++other)
      if (static_cast<int>(other) != rank) greet(rank, static_cast<int>(other), connections[other], timeout);
    return error;
  }
  void greet(int rank, int other, const Connection& to, milliseconds timeout) const {
    EXPECT_EQ(to.memory.is_open(), carrier != Carrier::kTcp) << rank << " to " << other;
    std::byte mine{static_cast<unsigned char>(rank)}, theirs{255};
    EXPECT_TRUE(send_with(to.socket, {&mine, 1}, {}));
    EXPECT_TRUE(wait_for_event(to.socket, POLLIN, Clock::now() + timeout));
    EXPECT_EQ(::recv(to.socket.get(), &theirs, 1, 0), 1);
    EXPECT_EQ(theirs, std::byte(other));
  }
  Carrier carrier;
  std::vector<Reach> reaches;
  std::vector<Listeners> listeners;
};

TEST(ConnectRanks, EveryPairIsConnected) {
  for (const auto carrier : {Carrier::kTcp, Carrier::kAny, Carrier::kMemory}) {
    const Meeting meeting(5, carrier);
    std::vector<std::string> errors(5);
    std::vector<std::thread> threads;
    for (int rank = 4; rank >= 0; --rank)
      threads.emplace_back(
          [&, rank] { errors[static_cast<size_t>(rank)] = meeting.join(rank, "a secret of this job"); });
    for (auto& thread : threads) thread.join();
    for (const auto& error : errors) EXPECT_EQ(error, "");
  }
}

/// Both ends of the connection of two ranks.
std::array<Connection, 2> meet(const Meeting& meeting) {
  std::string error, other_error;
  std::vector<Connection> one;
  std::thread other([&] { one = meeting.connect(1, "a secret of this job", other_error); });
  auto zero = meeting.connect(0, "a secret of this job", error);
  other.join();
  EXPECT_EQ(error + other_error, "");
  return {std::move(zero.at(1)), std::move(one.at(0))};
}

TEST(ConnectRanks, MemoryIsTheSameAtBothEnds) {
  const auto ends = meet(Meeting(2, Carrier::kAny));
  const MappedPair zero(ends[0].memory), one(ends[1].memory);
  zero->bytes[0][12345] = std::byte{77};
  EXPECT_EQ(one->bytes[0][12345], std::byte{77});
}

TEST(ConnectRanks, ARankOfAnotherHostIsReachedByTcp) {
  Meeting meeting(2, Carrier::kAny);
  meeting.reaches[0].local_name = "nobody of this host listens here";
  const auto ends = meet(meeting);
  EXPECT_FALSE(ends[0].memory.is_open());
  EXPECT_FALSE(ends[1].memory.is_open());
}

TEST(ConnectRanks, MemoryThatIsAskedForAndNotThereIsAnError) {
  Meeting meeting(2, Carrier::kMemory);
  meeting.reaches[0].local_name = "nobody of this host listens here";
  std::string error;
  meeting.connect(1, "a secret of this job", error);
  EXPECT_EQ(error, fmt::format("rank 1 shares no memory with rank 0 at {}, which comm.transport asks for",
                               meeting.reaches[0].address.text()));
}

FileDescriptor knock(const Address& address) {
  auto socket = open_connection(address, Clock::now() + std::chrono::seconds{5});
  LOCKSTEP_CHECK(socket.is_open());
  return socket;
}

FileDescriptor knock_locally(const Reach& reach) {
  bool busy = false;
  auto socket = open_locally(reach.local_name, busy);
  LOCKSTEP_CHECK(socket.is_open());
  return socket;
}

TEST(ConnectRanks, StrangersAreSentAwayAndKeepNobodyWaiting) {
  for (const auto carrier : {Carrier::kTcp, Carrier::kAny}) {
    const Meeting meeting(2, carrier);
    std::vector<FileDescriptor> strangers;
    for (int i = 0; i < 30; ++i)
      strangers.push_back(i % 2 == 0 || carrier == Carrier::kTcp ? knock(meeting.reaches[0].address)
                                                                 : knock_locally(meeting.reaches[0]));
    const Bytes noise(1000, std::byte{0x17});
    const auto hello = to_bytes({2, 1, fresh_nonce()});
    const FileDescriptor memory = create_pair_memory(), none;
    const bool local = carrier == Carrier::kAny;
    for (size_t i = 0; i < 10; ++i) ::send(strangers[i].get(), noise.data(), noise.size(), MSG_NOSIGNAL);
    for (size_t i = 10; i < 20; ++i) {  // knows the protocol, but not the token; and brings memory along
      send_with(strangers[i], hello, {});
      send_with(strangers[i], std::span(noise).first(32), i % 2 == 1 && local ? memory : none);
    }
    std::string error;
    std::thread other([&] { error = meeting.join(1, "a secret of this job"); });
    EXPECT_EQ(meeting.join(0, "a secret of this job"), "");
    other.join();
    EXPECT_EQ(error, "");
  }
}

TEST(ConnectRanks, AnotherJobsTokenIsRefused) {
  Meeting meeting(2);
  std::string error;
  std::thread other([&] { error = meeting.join(1, "the secret of another", milliseconds{700}); });
  EXPECT_EQ(meeting.join(0, "a secret of this job", milliseconds{700}), "rank 0: rank 1 did not connect in time");
  other.join();
  EXPECT_EQ(error,
            fmt::format("rank 1 could not connect to rank 0 at {}: nobody there proves that it belongs to this job",
                        meeting.reaches[0].address.text()));
}

/// A listener that never accepts, its backlog full: packets of another connection are dropped, as a firewall would.
TEST(ConnectRanks, AHostThatDropsPacketsKeepsNobodyBeyondTheTimeout) {
  Address address;
  const auto listener = listen_on({"127.0.0.1", 0}, address);
  ASSERT_EQ(::listen(listener.get(), 0), 0);
  const auto filling = knock(address);
  const auto start = Clock::now();
  EXPECT_FALSE(open_connection(address, start + milliseconds{300}).is_open());
  const Membership membership{1, 2, "a secret of this job", milliseconds{600}, Carrier::kAny};
  const auto what = problem([&] { connect_ranks(membership, {}, [&](int) { return Reach{address}; }); });
  EXPECT_NE(what.find("rank 1 could not connect to rank 0"), what.npos) << what;
  EXPECT_GE(Clock::now() - start, milliseconds{900});
  EXPECT_LT(Clock::now() - start, milliseconds{3000});
}

TEST(OpenConnection, NobodyThereIsKnownAtOnce) {
  Address address;
  listen_on({"127.0.0.1", 0}, address);  // closed again
  const auto start = Clock::now();
  EXPECT_FALSE(open_connection(address, start + std::chrono::seconds{10}).is_open());
  EXPECT_FALSE(open_connection({"no such host.invalid", 80}, start + std::chrono::seconds{10}).is_open());
  EXPECT_LT(Clock::now() - start, std::chrono::seconds{5});
}

std::string congestion_control(const FileDescriptor& socket) {
  char name[32] = "";
  socklen_t size = sizeof name;
  ::getsockopt(socket.get(), IPPROTO_TCP, TCP_CONGESTION, name, &size);
  return name;
}

/// A connection from one loopback address to another, and what it is controlled by before and after.
std::array<std::string, 2> controls_from(const char* host) {
  Address address;
  const auto listener = listen_on({"127.0.0.1", 0}, address);
  const FileDescriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in mine{}, other{};
  mine.sin_family = other.sin_family = AF_INET;
  other.sin_port = htons(address.port);
  ::inet_pton(AF_INET, host, &mine.sin_addr);
  ::inet_pton(AF_INET, "127.0.0.1", &other.sin_addr);
  EXPECT_EQ(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&mine), sizeof mine), 0);
  EXPECT_EQ(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&other), sizeof other), 0);
  auto before = congestion_control(socket);
  set_unpaced_within_host(socket);
  return {std::move(before), congestion_control(socket)};
}

TEST(UnpacedWithinHost, OnlyWhereBothEndsHaveOneAddress) {
  EXPECT_EQ(controls_from("127.0.0.1")[1], "reno");
  const auto [before, after] = controls_from("127.0.0.2");
  EXPECT_EQ(before, after);
  const auto local = testing::socket_pair();
  set_unpaced_within_host(local[0]);  // has no address: left alone
  set_unpaced_within_host(FileDescriptor());
}

TEST(ParseAddress, RefusesWhatIsNone) {
  EXPECT_EQ(parse_address("host:80").port, 80);
  for (const char* text : {"", ":", "host", "host:", ":80", "host:99999", "host:8x"})
    EXPECT_THROW(parse_address(text), BadInput) << text;
  EXPECT_THROW(parse_address(std::string(300, 'a') + ":1"), BadInput);
}

}  // namespace
}  // namespace lockstep
