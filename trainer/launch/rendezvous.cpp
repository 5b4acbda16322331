#include "trainer/launch/rendezvous.h"

#include <c10/util/Exception.h>

#include <charconv>
#include <sstream>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "core/error.h"
#include "core/files/random_access_file.h"
#include "runtime/context/gpu.h"
#include "runtime/transport/device/device_transport.h"
#include "runtime/transport/device/nccl_link.h"
#include "runtime/transport/process_group/gloo_streams.h"
#include "runtime/transport/rendezvous/connect.h"
#include "runtime/transport/rendezvous/handshake.h"
#include "runtime/transport/shared_memory/memory_stream.h"
#include "runtime/transport/streams/shared_tensors.h"
#include "runtime/transport/streams/socket_stream.h"
#include "runtime/transport/streams/stream_transport.h"
#include "trainer/launch/signed_store.h"
#include "trainer/launch/within.h"

namespace lockstep::trainer {
namespace {

constexpr size_t kLeastToken = 16;

std::string value_of(const Environment& variable, const char* name, const char* otherwise = "") {
  const char* value = variable(name);
  return value ? value : otherwise;
}

/// The first word of the file.
std::string token_in(const std::string& file) {
  constexpr int64_t kMostBytes = 4096;
  try {
    std::istringstream text(RandomAccessFile(file).text(kMostBytes));
    std::string token;
    text >> token;
    return token;
  } catch (const FileError& error) {
    fail<BadInput>("environment: LOCKSTEP_JOB_TOKEN_FILE: {} The job's secret was expected there.", error.what());
  }
}

std::string token_of(const Environment& variable) {
  auto token = value_of(variable, "LOCKSTEP_JOB_TOKEN");
  const auto file = value_of(variable, "LOCKSTEP_JOB_TOKEN_FILE");
  if (token.empty() && !file.empty()) token = token_in(file);
  if (token.size() < kLeastToken)
    fail<BadInput>(
        "environment: every process needs the job's token, the same secret of {} characters or more, in "
        "LOCKSTEP_JOB_TOKEN or in the file LOCKSTEP_JOB_TOKEN_FILE. For example export LOCKSTEP_JOB_TOKEN=$(openssl "
        "rand -hex 32) before torchrun or srun; lockstep launch makes one itself.",
        kLeastToken);
  return token;
}

Address master_of(const Environment& variable) {
  const auto host = value_of(variable, "MASTER_ADDR"), port = value_of(variable, "MASTER_PORT");
  if (host.empty() || port.empty())
    fail<BadInput>(
        "environment: MASTER_ADDR and MASTER_PORT should say where rank 0 can be met; torchrun and lockstep launch set "
        "them, with srun or mpirun set them yourself.");
  return parse_address(host + ":" + port);
}

/// What the launcher handed in under this name; none if it did not.
FileDescriptor handed_in(const Environment& variable, const char* name) {
  const auto text = value_of(variable, name);
  int descriptor = -1;
  std::from_chars(text.data(), text.data() + text.size(), descriptor);
  return FileDescriptor(descriptor);
}

/// Writes down what this rank does where `lockstep launch` can read it; other launchers have no place for it.
std::unique_ptr<FlightRecorder> recorder_of(const Environment& variable) {
  const auto memory = handed_in(variable, "LOCKSTEP_FLIGHT_MEMORY");
  return memory.is_open() ? std::make_unique<FlightRecorder>(memory) : nullptr;
}

bool agent_serves(const Environment& variable) { return value_of(variable, "TORCHELASTIC_USE_AGENT_STORE") == "True"; }

/// An agent's store outlives a restart, which all agents then count alike. One that is served by a rank does not, and
/// agents that have joined later have counted fewer.
std::string restart_of(const Environment& variable) {
  return agent_serves(variable) ? value_of(variable, "TORCHELASTIC_RESTART_COUNT", "0") : "0";
}

/// The socket that serves the store: handed in, or ours at that address. Nothing where another process serves.
FileDescriptor store_socket(const Launcher& launcher, const Environment& variable, const Address& master) {
  if (launcher.launch.rank != 0 || agent_serves(variable)) return {};
  if (auto socket = handed_in(variable, "LOCKSTEP_STORE_SOCKET"); socket.is_open()) return socket;
  Address bound;
  return listen_on(master, bound);
}

/// Longer than the store's own calls wait, where they know how to: their errors say more.
constexpr std::chrono::milliseconds kMore{500};

/// The store of the launch, served by this process if it has the socket. What belongs to one restart has its number.
SignedStore open_store(const Launcher& launcher, const Environment& variable, const Membership& membership) {
  const auto master = master_of(variable);
  auto socket = store_socket(launcher, variable, master);
  const auto waiting = fmt::format("rank {} has waited at the store {}", membership.rank, master.text());
  c10d::TCPStoreOptions options;
  options.port = master.port;
  options.isServer = socket.is_open();
  options.waitWorkers = false;
  options.timeout = membership.timeout;
  if (socket.is_open()) options.masterListenFd = socket.release();
  auto store = within(membership.timeout + kMore, waiting, [host = master.host, options]() -> SignedStore::Store {
    return c10::make_intrusive<c10d::TCPStore>(host, options);
  });
  return {std::move(store), membership.token, fmt::format("lockstep/{}/", restart_of(variable)),
          membership.timeout + kMore, waiting};
}

/// Where ranks can be reached, in the store: "HOST:PORT NAME".
std::string address_key(int rank) { return fmt::format("address of rank {}", rank); }

void publish(const SignedStore& store, int rank, const Reach& reach) {
  store.set(address_key(rank), reach.address.text() + " " + reach.local_name);
}

Reach find(const SignedStore& store, int rank) {
  const auto text = store.get(address_key(rank));
  const auto space = text.find(' ');
  return {parse_address(text.substr(0, space)), text.substr(space + 1)};
}

using Streams = std::vector<std::unique_ptr<Stream>>;

Streams streams_of(int rank, std::vector<Connection> connections) {
  Streams streams;
  for (auto& [socket, memory] : connections) {
    const int side = static_cast<int>(streams.size()) < rank ? 1 : 0;
    auto& stream = streams.emplace_back();
    if (memory.is_open())
      stream = std::make_unique<MemoryStream>(std::move(socket), memory, side, share_tensors());
    else if (socket.is_open())
      stream = std::make_unique<SocketStream>(std::move(socket));
  }
  return streams;
}

constexpr const char* kOver = "the run is over";
std::string leaving_key(int rank) { return fmt::format("rank {} leaves", rank); }

/// The ranks of the launch from the mesh's on, as the process of rank 0 sees them.
struct Spares {
  int first = 0, end = 0;

  /// Who serves the store stays until they know. Who is gone is not waited for long.
  void dismiss(const SignedStore& store) const {
    if (first == end) return;
    store.set(kOver, "");
    for (int rank = first; rank < end; ++rank) store.get(leaving_key(rank), std::chrono::seconds(2));
  }
};

/// The store lives as long as the transport: ranks that are slower still read from it.
struct Kept {
  Kept(SignedStore server, int rank, Streams streams, std::chrono::milliseconds timeout,
       std::unique_ptr<FlightRecorder> recorder)
      : store(std::move(server)), transport(rank, std::move(streams), timeout, std::move(recorder)) {}
  Kept(const Kept&) = delete;
  Kept& operator=(const Kept&) = delete;
  ~Kept() {
    try {
      spares.dismiss(store);
    } catch (const std::exception&) {  // they find that the store is gone
    }
  }
  SignedStore store;
  Spares spares = {};
  StreamTransport transport;
};

Carrier carrier_of(const CommSection& comm) {
  if (comm.transport == "tcp") return Carrier::kTcp;
  if (comm.transport == "gloo") return Carrier::kGloo;
  return comm.transport == "shared_memory" ? Carrier::kMemory : Carrier::kAny;
}

Streams own_streams(const Membership& membership, const SignedStore& store, const std::string& host) {
  Reach reach;
  const auto listeners = listen_for(membership.carrier, {host, 0}, reach);
  publish(store, membership.rank, reach);
  return streams_of(membership.rank,
                    connect_ranks(membership, listeners, [&](int other) { return find(store, other); }));
}

/// Gloo asks the store as long as it likes.
Streams over_gloo(const Membership& membership, const SignedStore& store, const std::string& host) {
  constexpr std::chrono::seconds kEnd{2};  // of streams that do not come to be
  return within(
      2 * membership.timeout + kMore + kEnd, fmt::format("rank {} has waited for Gloo", membership.rank),
      [membership, host, part = store.unsigned_part("gloo")] { return gloo_streams(membership, part, host); });
}

std::shared_ptr<Transport> connect(const Launcher& launcher, const Environment& variable, const CommSection& comm,
                                   const Facts& facts, int world) {
  const std::chrono::seconds patience(comm.init_timeout_seconds);
  const auto rank = static_cast<int>(launcher.launch.rank);
  const Membership membership{rank, world, token_of(variable), patience, carrier_of(comm)};
  if (membership.carrier == Carrier::kGloo) require_gloo_by_tcp();
  const auto store = open_store(launcher, variable, membership);
  agree(store, rank, world, facts);
  const auto host = value_of(variable, "LOCKSTEP_BIND_ADDRESS", "127.0.0.1");
  auto streams =
      membership.carrier == Carrier::kGloo ? over_gloo(membership, store, host) : own_streams(membership, store, host);
  const auto kept = std::make_shared<Kept>(store, rank, std::move(streams), patience, recorder_of(variable));
  if (rank == 0) kept->spares = {world, static_cast<int>(launcher.launch.world)};
  return {kept, &kept->transport};
}

/// What `work` returns; errors of LibTorch's store as ours.
template <class Work>
auto with_store(const Launcher& launcher, const Environment& variable, const Work& work) try {
  return work();
} catch (const c10::Error& error) {
  fail<TransportError>("rank {} could not meet the others through the store at {}: {}", launcher.launch.rank,
                       master_of(variable).text(), error.what_without_backtrace());
}

}  // namespace

Processes join_processes(const Launcher& launcher, const Environment& variable, const CommSection& comm,
                         const Facts& facts, int64_t ranks) {
  if (launcher.launch.simulated) return {};
  const auto world = static_cast<int>(ranks > 0 ? ranks : launcher.launch.world);
  return with_store(launcher, variable, [&]() -> Processes {
    return {static_cast<int>(launcher.launch.rank), world, connect(launcher, variable, comm, facts, world)};
  });
}

void wait_as_spare(const Launcher& launcher, const Environment& variable, const CommSection& comm) {
  constexpr std::chrono::milliseconds kPause{200};
  const std::chrono::seconds patience(comm.init_timeout_seconds);
  const auto rank = static_cast<int>(launcher.launch.rank), world = static_cast<int>(launcher.launch.world);
  with_store(launcher, variable, [&] {
    const auto store = open_store(launcher, variable, {rank, world, token_of(variable), patience, carrier_of(comm)});
    while (!store.find(kOver)) std::this_thread::sleep_for(kPause);
    store.set(leaving_key(rank), "");
  });
}

void use_gpus(Processes& processes, const CommSection& comm) {
  require_gpu(processes.rank);
  if (!processes.transport) return;
  auto link = make_nccl_link(*processes.transport, processes.rank, processes.world);
  processes.transport = std::make_shared<DeviceTransport>(processes.transport, std::move(link),
                                                          std::chrono::seconds(comm.init_timeout_seconds));
}

void say_last(const Processes& processes, const std::exception& error) {
  if (processes.transport) processes.transport->say_last(error.what());
}

void use_train_timeout(const Processes& processes, const CommSection& comm) {
  if (processes.transport) processes.transport->set_timeout(std::chrono::seconds(comm.train_timeout_seconds));
}

}  // namespace lockstep::trainer
