// A small program of collectives in many processes, of which one rank does something wrong: what `lockstep launch` is
// for `lockstep train`, without a model. Started as
//
//   fault_program launch PROCESSES CARRIER TIMEOUT FAULT FILE
//
// it launches itself; the last rank is the one at fault, and writes the time of its fault to FILE.
#include <sys/socket.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <thread>

#include "core/error.h"
#include "fuzz/cases/tensors.h"
#include "runtime/context/run_context.h"
#include "runtime/context/scopes.h"
#include "runtime/redistribution/gather.h"
#include "runtime/redistribution/redistribute.h"
#include "tools/lockstep/commands.h"
#include "trainer/launch/rendezvous.h"

namespace lockstep {
namespace {

struct Settings {
  std::string carrier, fault, file;
  int timeout = 1;
};

/// One rank's program. Every step is an all_reduce on the first axis and an all_gather on the last.
class Program {
 public:
  Program(Settings settings, const trainer::Processes& processes, const trainer::CommSection& comm)
      : settings_(std::move(settings)),
        processes_(processes),
        comm_(comm),
        is_faulty_(processes.rank == processes.world - 1),
        world_({.rank_count = processes.world, .local_ranks = {processes.rank}, .transport = processes.transport}),
        mesh_(world_.mesh(processes.world == 2 ? "a=2" : "a=2,b=2")) {}

  void run() {
    for (int step = 0; step < steps(); ++step) {
      RunContext::current().begin_microbatch(step, 0);
      if (is_faulty_ && step == (settings_.fault == "unready" ? 0 : kFaultyStep))
        do_wrong();
      else
        do_right();
      if (step == 0) trainer::use_train_timeout(processes_, comm_);
    }
  }

 private:
  static constexpr int kSteps = 12, kFaultyStep = 5;
  /// Data that goes through shared memory arrives without the sockets; a closed one is noticed some steps later.
  int steps() const { return settings_.fault == "closed" ? 100'000 : kSteps; }
  static constexpr int64_t kRows = 8, kClasses = 4;  ///< of the table that tokens name rows of; of the logits

  void move(const Mesh& mesh, const std::string& axis, const std::string& placement, c10::IntArrayRef sizes,
            c10::ScalarType dtype = c10::kFloat) {
    const auto global = testing::exact_tensor(sizes, dtype);
    const auto source = Layout::parse(mesh, "[" + axis + "=" + placement + "]");
    const auto moved = redistribute(distribute(global, source), Layout::replicated(mesh));
    LOCKSTEP_CHECK(testing::same_bits(gather(moved), global), "other bits");
  }

  void reduce() { move(mesh_, first(), "P(sum)", {64}); }
  void gather_shards() { move(mesh_, last(), "S(0)", {64}); }
  std::string first() const { return mesh_.axes().front().name; }
  std::string last() const { return mesh_.axes().back().name; }

  /// Each rank sees its own part alone: the last one's holds the number. A gather is what the others wait in.
  at::Tensor part_of_mine(const at::Tensor& plain) const {
    return distribute(plain, Layout::parse(mesh_, mesh_.axis_count() == 1 ? "[a=S(0)]" : "[a=S(0), b=S(0)]"));
  }
  void look_up(int64_t last) {
    auto tokens = at::zeros({64}, at::kLong);
    tokens[-1] = last;
    const auto table = distribute(testing::exact_tensor({kRows, 2}), Layout::replicated(mesh_));
    static_cast<void>(gather(at::embedding(table, part_of_mine(tokens))));
  }
  void lose(int64_t last) {
    auto labels = at::zeros({64}, at::kLong);
    labels[-1] = last;
    const auto logits = part_of_mine(testing::exact_tensor({64, kClasses}));
    static_cast<void>(gather(at::cross_entropy_loss(logits, part_of_mine(labels))));
  }
  void draw(double last) {
    auto probabilities = at::full({64}, 0.5);
    probabilities[-1] = last;
    const RandomScope seed(7);
    static_cast<void>(gather(at::bernoulli(part_of_mine(probabilities))));
  }

  void do_right() {
    reduce();
    gather_shards();
    if (settings_.fault == "index") look_up(0);
    if (settings_.fault == "label") lose(0);
    if (settings_.fault == "probability") draw(0.5);
  }

  void do_wrong() {
    std::ofstream(settings_.file) << std::chrono::steady_clock::now().time_since_epoch().count() << std::flush;
    const std::map<std::string, std::function<void()>> faults{
        {"kill", [] { ::raise(SIGKILL); }},
        {"stop", [] { ::raise(SIGSTOP); }},
        {"abort", [] { std::abort(); }},
        {"exception", [] { throw std::runtime_error("a fault of this test"); }},
        {"index", [this] { look_up(kRows); }},
        {"label", [this] { lose(kClasses); }},
        {"probability", [this] { draw(1.5); }},
        {"closed", [this] { close_sockets(), do_right(); }},
        {"late", [this] { sleep(0.5), do_right(); }},
        {"slow", [this] { sleep(20), do_right(); }},
        {"unready", [this] { sleep(2), do_right(); }},
        {"op", [this] { move(mesh_, first(), "S(0)", {64}); }},
        {"shape", [this] { move(mesh_, first(), "P(sum)", {96}); }},
        {"dtype", [this] { move(mesh_, first(), "P(sum)", {64}, c10::kInt); }},
        {"group", [this] { mesh_.axis_count() == 1 ? move_in_other_group() : move(mesh_, last(), "P(sum)", {64}); }},
        {"reordered", [this] { gather_shards(), reduce(); }}};
    faults.at(settings_.fault)();
  }

  /// Two ranks have one group: only that of another mesh is another.
  void move_in_other_group() { move(world_.mesh("other=2"), "other", "P(sum)", {64}); }

  void sleep(double timeouts) {
    std::this_thread::sleep_for(std::chrono::duration<double>(timeouts * settings_.timeout));
  }

  static bool listens(int descriptor) {
    int value = 0;
    socklen_t size = sizeof value;
    return ::getsockopt(descriptor, SOL_SOCKET, SO_ACCEPTCONN, &value, &size) == 0 && value != 0;
  }
  /// All connections. (Gloo ends the process if its listening socket is closed.)
  static void close_sockets() {
    for (int descriptor = 3; descriptor < 1024; ++descriptor)
      if (!listens(descriptor)) ::shutdown(descriptor, SHUT_RDWR);
  }

  Settings settings_;
  const trainer::Processes& processes_;
  const trainer::CommSection& comm_;
  bool is_faulty_;
  World world_;
  const Mesh& mesh_;
};

ExitCode run_rank(const Settings& settings) {
  const auto variable = [](const char* name) -> const char* { return std::getenv(name); };
  trainer::CommSection comm;
  comm.transport = settings.carrier;
  comm.train_timeout_seconds = settings.timeout;
  const auto processes = trainer::join_processes(trainer::detect_launcher(variable), variable, comm, {});
  try {
    Program(settings, processes, comm).run();
  } catch (const std::exception& error) {
    trainer::say_last(processes, error);
    throw;
  }
  return ExitCode::kFine;
}

ExitCode run(const std::vector<std::string>& words) {
  if (words.at(0) == "rank") return run_rank({words.at(1), words.at(3), words.at(4), std::stoi(words.at(2))});
  tool::LaunchOptions options;
  options.processes = std::stoi(words.at(1));
  options.command = {"rank", words.at(2), words.at(3), words.at(4), words.at(5)};
  return tool::run_launch(options);
}

}  // namespace
}  // namespace lockstep

int main(int count, char** arguments) {
  try {
    return static_cast<int>(lockstep::run({arguments + 1, arguments + count}));
  } catch (const lockstep::Error& error) {
    std::cerr << "lockstep: " << error.what() << "\n";
    return static_cast<int>(error.code());
  } catch (const std::exception& error) {
    std::cerr << "lockstep: " << error.what() << "\n";
    return 1;
  }
}
