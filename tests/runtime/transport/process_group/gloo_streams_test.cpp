// Streams over c10d's Gloo (tests of all streams: stream_transport_test.cpp): who belongs to the job, who is missing,
// and blocks that are none.
#include "runtime/transport/process_group/gloo_streams.h"

#include <ATen/Functions.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fuzz/trials/streams.h"
#include "runtime/transport/process_group/plain_reason.h"
#include "tests/runtime/transport/process_group/gloo_transports.h"

namespace lockstep {
namespace {

using testing::member_of_gloo;
using testing::problem;
using ::testing::StartsWith;

TEST(GlooStreams, RefuseWhoDoesNotKnowTheToken) {
  const auto store = c10::make_intrusive<c10d::HashStore>();
  const auto meet = [&](int rank, const char* token) {
    return problem([&] { gloo_streams(member_of_gloo(rank, 2, token), store, "127.0.0.1"); });
  };
  auto other = std::async(std::launch::async, meet, 1, "the token of another job");
  const auto mine = meet(0, "the token of this job");
  EXPECT_THAT(mine, StartsWith("rank 0 met rank 1 over Gloo, which does not prove that it belongs to this job"));
  EXPECT_THAT(other.get(), StartsWith("rank 1 met rank 0 over Gloo, which does not prove that it belongs to this job"));
}

TEST(GlooStreams, SayThatOneIsMissing) {
  auto member = member_of_gloo(0, 2);
  member.timeout = std::chrono::milliseconds(700);
  const auto error = problem([&] { gloo_streams(member, c10::make_intrusive<c10d::HashStore>(), "127.0.0.1"); });
  EXPECT_THAT(error, StartsWith("rank 0 cannot meet the others over Gloo: "));
}

/// Whoever asks for TLS must not believe that it is there.
TEST(GlooStreams, RefuseADeviceThatIsNone) {
  ::setenv("GLOO_DEVICE_TRANSPORT", "TCP_TLS", 1);
  try {
    require_gloo_by_tcp();
    ADD_FAILURE();
  } catch (const BadInput& error) {
    EXPECT_THAT(error.what(), StartsWith("environment: GLOO_DEVICE_TRANSPORT is \"TCP_TLS\": over this LibTorch's Gloo "
                                         "bytes travel by TCP and in the clear, whatever it says. Unset it, "));
  }
  ::unsetenv("GLOO_DEVICE_TRANSPORT");
}

TEST(GlooStreams, SayThatAnAddressIsNone) {
  const auto error =
      problem([&] { gloo_streams(member_of_gloo(0, 2), c10::make_intrusive<c10d::HashStore>(), "no.such.host."); });
  EXPECT_THAT(error, StartsWith("rank 0 cannot meet the others over Gloo: "));
}

/// Rank 1 speaks Gloo, and nothing else that is known here.
TEST(GlooStreams, EndWhereABlockIsNone) {
  const auto store = c10::make_intrusive<c10d::HashStore>();
  constexpr std::chrono::seconds kLong{20};
  auto other = std::async(std::launch::async, [&] { return gloo_group(store, 1, 2, "127.0.0.1", kLong); });
  const auto shared = std::make_shared<SharedGroup>(gloo_group(store, 0, 2, "127.0.0.1", kLong));
  const auto stranger = other.get();
  GroupStream stream(shared, 1);
  std::vector<at::Tensor> noise{at::full({512}, 0x5a, at::kByte)};
  stranger->send(noise, 0, 0)->wait();
  Bytes got(8);
  const MutableSpan to[] = {got};
  while (stream.closed().empty()) EXPECT_EQ(stream.receive(to), 0U);
  EXPECT_EQ(stream.closed(), "it sent what is no block");
  EXPECT_FALSE(stream.can_receive());
}

/// What Gloo throws names its own sources.
TEST(GlooStreams, SayWhyWithoutWhere) {
  EXPECT_EQ(plain_reason(std::runtime_error("[/a/pair.cc:547] Connection closed by peer [1.2.3.4]:5\nmore")),
            "Connection closed by peer [1.2.3.4]:5");
  EXPECT_EQ(plain_reason(std::runtime_error("[a] b")), "[a] b");
  EXPECT_EQ(plain_reason(std::runtime_error("[/a/pair.cc:547]")), "[/a/pair.cc:547]");
}

}  // namespace
}  // namespace lockstep
