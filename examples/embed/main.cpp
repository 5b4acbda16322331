// A matrix product on a simulated 2 x 2 mesh, in a program that has nothing else of Lockstep.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include <cstdio>

#include "core/error.h"
#include "runtime/context/world.h"
#include "runtime/redistribution/gather.h"
#include "runtime/redistribution/redistribute.h"
#include "runtime/tensor/sharded_tensor.h"

namespace {

using namespace lockstep;

/// Whole numbers, so that the order of a sum does not matter.
at::Tensor whole_numbers(int64_t rows, int64_t columns) {
  return at::arange(rows * columns).remainder(11).sub(5).to(at::kFloat).reshape({rows, columns});
}

int run() {
  World world({.rank_count = 4});
  const Mesh& mesh = world.mesh("dp=2,tp=2");
  const auto a = whole_numbers(6, 8), b = whole_numbers(8, 10);

  // Rows of `a` over dp, the contraction over tp: each rank multiplies a 3 x 4 block by a 4 x 10 block.
  const auto product =
      at::mm(distribute(a, Layout::parse(mesh, "[dp=S(0), tp=S(1)]")), distribute(b, Layout::parse(mesh, "[tp=S(0)]")));
  std::printf("product   %s\n", layout_of(product).text().c_str());

  // The sum over tp is still open (Partial); moving it to shards is one reduce-scatter.
  const auto moved = redistribute(product, Layout::parse(mesh, "[dp=S(0), tp=S(1)]"));
  const auto sent = world.traffic().on("tp", CollectiveKind::kReduceScatter);
  std::printf("moved     %s  %ld reduce-scatter, %.0f bytes a rank\n", layout_of(moved).text().c_str(),
              static_cast<long>(sent.count), sent.bytes);

  const bool equal = at::equal(gather(moved), at::mm(a, b));
  std::printf("%s\n", equal ? "equal to one device" : "DIFFERENT from one device");
  return equal ? 0 : 1;
}

}  // namespace

int main() {
  try {
    return run();
  } catch (const Error& error) {  // everything that Lockstep throws; its code is the exit code (docs/errors.md)
    std::fprintf(stderr, "embed: %s\n", error.what());
    return static_cast<int>(error.code());
  }
}
