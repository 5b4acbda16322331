#include "tools/bench/rows/dispatch_rows.h"

#include <ATen/Functions.h>
#include <ATen/Parallel.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/error.h"
#include "runtime/context/world.h"
#include "runtime/dispatch/backend.h"
#include "runtime/planning/plan_cache.h"
#include "runtime/planning/rules/built_in_rules.h"
#include "runtime/tensor/sharded_tensor.h"

namespace lockstep::bench {
namespace {

/// A mesh of one axis, all its ranks here.
struct LocalMesh {
  explicit LocalMesh(int ranks) : world({.rank_count = ranks}), mesh(world.mesh({{"tp", ranks}})) {}

  at::Tensor place(const at::Tensor& plain) const { return distribute(plain, Layout::replicated(mesh)); }

  World world;
  const Mesh& mesh;
};

struct Pair {
  explicit Pair(c10::IntArrayRef sizes) : left(at::rand(sizes)), right(at::rand(sizes)) {}
  Pair placed(const LocalMesh& mesh) const { return {mesh.place(left), mesh.place(right)}; }
  at::Tensor sum() const { return at::add(left, right); }

  at::Tensor left, right;

 private:
  Pair(at::Tensor a, at::Tensor b) : left(std::move(a)), right(std::move(b)) {}
};

class Measurement {
 public:
  explicit Measurement(const PairedOptions& options) : options_(options) {}

  std::vector<BenchRow> rows() {
    add(
        "add", [&] { placed_.sum(); }, [&] { plain_.sum(); });
    const auto a = at::rand({2, 4}), b = at::rand({4, 2});
    const auto ours_a = one_.place(a), ours_b = one_.place(b);
    add(
        "mm", [&] { at::mm(ours_a, ours_b); }, [&] { at::mm(a, b); });
    add(
        "view",
        [&] {
          placed_.left.view({2, 4});
        },
        [&] {
          plain_.left.view({2, 4});
        });
    const auto on_four = plain_.placed(four_);
    add(
        "add_four_ranks", [&] { on_four.sum(); }, [&] { placed_.sum(); }, "one rank");
    // A new shape is one whose plan is not there.
    add(
        "add_new_shape", [&] { one_.world.part<PlanCache>().clear(), placed_.sum(); }, [&] { plain_.sum(); });
    return std::move(rows_);
  }

 private:
  template <class Ours, class Peer>
  void add(const char* name, Ours&& ours, Peer&& peer, const char* peer_name = "libtorch") {
    rows_.push_back(make_row(name, time_in_pairs(ours, peer, options_), peer_name, "ns", 1e9));
  }

  PairedOptions options_;
  LocalMesh one_{1}, four_{4};
  Pair plain_{{8}}, placed_ = plain_.placed(one_);
  std::vector<BenchRow> rows_;
};

template <class Function>
void in_a_child(Function&& function) {
  const auto child = ::fork();
  LOCKSTEP_CHECK(child >= 0, "fork");
  if (child == 0) function(), ::_exit(0);
  int status = 0;
  LOCKSTEP_CHECK(::waitpid(child, &status, 0) == child && status == 0, "a child that made the op table ended so: {}",
                 status);
}

/// What a process pays once for all rows: a child that makes the table and registers it with LibTorch, beside one that
/// does not. REQUIRES: nothing has registered it in this process.
BenchRow op_table_row(const PairedOptions& options) {
  const auto make_table = [] { built_in_rules(), register_backend(); };
  const auto timing = time_in_pairs([&] { in_a_child(make_table); }, [] { in_a_child([] {}); }, options);
  return make_row("op_table", timing, "fork alone", "ms", 1e3);
}

}  // namespace

std::vector<BenchRow> dispatch_rows(const PairedOptions& options) {
  at::set_num_threads(1);
  std::vector rows{op_table_row(options)};
  register_backend();
  for (auto& row : Measurement(options).rows()) rows.push_back(std::move(row));
  return rows;
}

}  // namespace lockstep::bench
