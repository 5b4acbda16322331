#pragma once
#include <ATen/Functions.h>

#include <functional>

#include "core/error.h"
#include "replay/op_case/case_capture.h"
#include "runtime/context/run_context.h"
#include "runtime/context/world.h"
#include "runtime/tensor/sharded_tensor.h"

/// Cases of ops as verification writes them.
namespace lockstep::testing {

/// What `call` does on tp=3 to [7, 5] numbers, cut unevenly, as a case with `expected` as what one device gives.
inline replay::OpCase case_of(const char* op, const at::Tensor& expected,
                              const std::function<void(const at::Tensor&)>& call) {
  World::Options options;
  options.rank_count = 3;
  World world(options);
  const auto& mesh = world.mesh("tp=3");
  const at::NoGradGuard no_grad;
  RunContext::current().begin_microbatch(1, 0);
  replay::CaseCapture capture(fmt::format("step 1, microbatch 0, init, {} #0", op));
  const ObserverScope scope(world.observers(), capture);
  call(distribute(at::arange(35, at::kFloat).view({7, 5}), Layout::parse(mesh, "[tp=S(0)]")));
  auto made = capture.take("a test", {expected});
  if (!made) fail<BadInput>("{}", capture.why_not());
  return *made;
}

inline replay::OpCase sum_case() {
  const auto plain = at::arange(35, at::kFloat).view({7, 5});
  return case_of("sum.dim_IntList", plain.sum(0), [](const at::Tensor& x) { at::sum(x, {0}); });
}

}  // namespace lockstep::testing
