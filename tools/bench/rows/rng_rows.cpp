#include "tools/bench/rows/rng_rows.h"

#include <ATen/Functions.h>
#include <ATen/Parallel.h>

#include "rng/fill.h"
#include "tools/bench/paired.h"

namespace lockstep::bench {
namespace {

constexpr int64_t kElements = 1 << 20;

template <class Peer>
BenchRow row(const char* name, const rng::Distribution& distribution, const char* peer_name, Peer&& peer) {
  const auto out = at::empty({kElements});
  auto peer_out = at::empty({kElements});
  const auto subarray = rng::Subarray::whole({kElements});
  uint64_t stream = 0;
  const auto timing = time_in_pairs(
      [&] { rng::fill(out.data_ptr(), rng::ScalarKind::kFloat32, distribution, rng::Key{1}, ++stream, subarray); },
      [&] { peer(peer_out); });
  return make_row(name, timing, peer_name, "ns/element", 1e9 / kElements);
}

}  // namespace

std::vector<BenchRow> rng_rows() {
  at::set_num_threads(1);
  return {row("uniform_fp32", rng::uniform(), "at::rand", [](at::Tensor& out) { at::rand_out(out, {kElements}); }),
          row("normal_fp32", rng::normal(), "at::randn", [](at::Tensor& out) { at::randn_out(out, {kElements}); })};
}

}  // namespace lockstep::bench
