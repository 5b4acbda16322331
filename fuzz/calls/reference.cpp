// What one device gives.
#include "fuzz/calls/reference.h"

#include <ATen/Functions.h>
#include <rapidcheck.h>

#include "fuzz/calls/drawn_mesh.h"
#include "fuzz/cases/tensors.h"
#include "runtime/context/scopes.h"
#include "runtime/redistribution/gather.h"

namespace lockstep::testing {

Stack on_mesh_device(const OpCall& call) {
  auto stack = call.arguments;
  for (size_t i = 0; i < stack.size(); ++i)
    if (call.op.schema().arguments()[i].name() == "device") stack[i] = c10::Device(c10::kPrivateUse1);
  return stack;
}

std::vector<at::Tensor> scatter_all(const OpCall& call, const std::vector<Layout>& layouts) {
  std::vector<at::Tensor> tensors;
  for (size_t i = 0; i < call.slots.size(); ++i) tensors.push_back(scatter(call.tensor(i), layouts[i]));
  return tensors;
}

std::vector<at::Tensor> reference(const OpCase& op_case, const OpCall& call, const Numerics& numerics) {
  std::vector<at::Tensor> results;
  if (!op_case.is(OpCase::kOwnPeer)) {
    for (const auto& result : run(call.op, plain_arguments(call, numerics)))
      results.push_back(into_domain(numerics.domain, at::resolve_neg(at::resolve_conj(result))));
    return results;
  }
  World::Options options;
  options.domain = numerics.domain;
  const auto world = simulated_world({{"one", 1}}, std::move(options));
  const auto& mesh = world->mesh("one=1");
  const MeshScope scope(mesh);
  const std::vector<Layout> layouts(call.slots.size(), Layout::replicated(mesh));
  const auto arguments =
      op_case.is(OpCase::kFactory) ? on_mesh_device(call) : with_tensors(call, scatter_all(call, layouts));
  for (const auto& result : run(call.op, arguments)) results.push_back(gather(result));
  return results;
}

bool lacks_kernel(std::string_view error, std::string_view dtype) {
  return error.find(fmt::format("not implemented for '{}", dtype)) != error.npos;
}

/// Left out is what LibTorch has no kernel for, of half-precision numbers or of integers; what it does not take of
/// dtypes that are tried; and out= tensors of a dtype that only a float64 domain gives them. An assertion of its own
/// that it fails is none of these: no case is known to meet one.
std::vector<at::Tensor> reference_if_any(const OpCase& op_case, const OpCall& call, const Numerics& numerics) {
  try {
    return reference(op_case, call, numerics);
  } catch (const std::exception& error) {
    const std::string what = error.what();
    if (what.find("INTERNAL ASSERT FAILED") != what.npos) throw;
    if (is_tried(op_case, numerics.dtype)) RC_DISCARD("LibTorch does not take that dtype");
    if (lacks_kernel(what)) RC_DISCARD("no kernel");
    const bool is_widened = numerics.domain == Domain::kFloat64 && c10::isIntegralType(numerics.dtype, true);
    if (is_widened && what.find("Expected out tensor to have dtype") != what.npos) RC_DISCARD("another dtype");
    throw;
  }
}

}  // namespace lockstep::testing
