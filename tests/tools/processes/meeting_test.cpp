// What stands where the ranks should meet: strangers at the store's address, and what a token's file may be.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <chrono>

#include "core/files/file_descriptor.h"
#include "tests/tools/run_lockstep.h"
#include "tests/tools/small_job.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

/// Listens and never answers: the system accepts connections for it.
struct SilentListener {
  SilentListener() : socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* any = reinterpret_cast<sockaddr*>(&address);
    if (::bind(socket.get(), any, size) == 0 && ::listen(socket.get(), 64) == 0 &&
        ::getsockname(socket.get(), any, &size) == 0)
      port = ntohs(address.sin_port);
  }
  FileDescriptor socket;
  int port = 0;
};

class Meeting : public ::testing::Test {
 protected:
  lockstep::Run join(int rank, int port, const std::string& token = "LOCKSTEP_JOB_TOKEN=0123456789abcdef") {
    const auto start = std::chrono::steady_clock::now();
    auto run = run_lockstep("train " + job_ + " -q --comm.init_timeout_seconds 2",
                            "WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 TORCHELASTIC_USE_AGENT_STORE=True RANK=" +
                                std::to_string(rank) + " MASTER_PORT=" + std::to_string(port) + " " + token + " ");
    seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return run;
  }

  TemporaryFolder folder_;
  std::string job_ = write_small_job(folder_);
  double seconds_ = 0;
};

TEST_F(Meeting, AStoreThatNeverAnswersIsNotWaitedForForEver) {
  const SilentListener listener;
  ASSERT_GT(listener.port, 0);
  for (const int rank : {0, 1}) {
    const auto run = join(rank, listener.port);
    EXPECT_EQ(run.code, 4);
    EXPECT_EQ(run.err, "lockstep: rank " + std::to_string(rank) + " has waited at the store 127.0.0.1:" +
                           std::to_string(listener.port) + " for 2 s (comm.init_timeout_seconds), and got no answer\n");
    EXPECT_LT(seconds_, 6) << "and the engine is loaded in this time";
  }
}

TEST_F(Meeting, NobodyAtTheStoresAddressIsNamed) {
  int port = 0;
  {
    const SilentListener listener;
    port = listener.port;
  }
  const auto run = join(1, port);
  EXPECT_EQ(run.code, 4);
  EXPECT_THAT(run.err, HasSubstr("127.0.0.1:" + std::to_string(port)));
  EXPECT_LT(seconds_, 6);
}

TEST_F(Meeting, ATokensFileIsASmallFile) {
  const auto problem = [&](const std::string& path) {
    const auto run = join(1, 1, "LOCKSTEP_JOB_TOKEN_FILE=" + path);
    EXPECT_EQ(run.code, 2) << path;
    EXPECT_LT(seconds_, 2) << path;
    EXPECT_THAT(run.err, StartsWith("lockstep: environment: LOCKSTEP_JOB_TOKEN_FILE: " + path + ": "));
    EXPECT_THAT(run.err, testing::EndsWith(" The job's secret was expected there.\n"));
    return run.err;
  };
  ASSERT_EQ(::mkfifo(folder_.file("fifo").c_str(), 0600), 0);
  EXPECT_THAT(problem(folder_.file("fifo")), HasSubstr("is not a regular file."));
  EXPECT_THAT(problem(folder_.path()), HasSubstr("is not a regular file."));
  EXPECT_THAT(problem(folder_.file("none")), HasSubstr("No such file or directory."));
  std::filesystem::resize_file(folder_.write("sparse", ""), std::uintmax_t{1} << 40);
  EXPECT_THAT(problem(folder_.file("sparse")), HasSubstr("is of 1099511627776 bytes, 4096 are the most"));
}

}  // namespace
}  // namespace lockstep
