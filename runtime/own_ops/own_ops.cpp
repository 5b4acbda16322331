#include "runtime/own_ops/own_ops.h"

#include <torch/csrc/autograd/autograd_not_implemented_fallback.h>

#include <vector>

#include "core/error.h"
#include "runtime/own_ops/families.h"

namespace lockstep {
namespace {

constexpr OwnOpFamily (*kFamilies[])() = {own_ops::adamw,
                                          own_ops::attention,
                                          own_ops::attention_blocks,
                                          own_ops::attention_draws,
                                          own_ops::document_attention,
                                          own_ops::experts,
                                          own_ops::gate,
                                          own_ops::hadamard,
                                          own_ops::loss,
                                          own_ops::norm,
                                          own_ops::low_precision,
                                          own_ops::rotary,
                                          own_ops::sums,
                                          own_ops::weight_gradient};

std::vector<OwnOp> put_together() {
  std::vector<OwnOp> all;
  for (const auto family : kFamilies) {
    const auto ops = family().ops;
    all.insert(all.end(), ops.begin(), ops.end());
  }
  for (const auto& op : all)
    LOCKSTEP_CHECK(op.rule.op == "mesh::" + op.name(), "the rule of {} stands beside the schema {}", op.rule.op,
                   op.schema);
  return all;
}

void define_kernels() {
  static torch::Library schemas(torch::Library::DEF, "mesh", std::nullopt, __FILE__, __LINE__);
  static torch::Library on_cpu(torch::Library::IMPL, "mesh", c10::DispatchKey::CPU, __FILE__, __LINE__);
  static torch::Library on_gpu(torch::Library::IMPL, "mesh", c10::DispatchKey::CUDA, __FILE__, __LINE__);
  for (const auto& op : all_own_ops()) {
    const auto name = op.name();
    schemas.def(op.schema);
    on_cpu.impl(name.c_str(), op.on_cpu());
    if (op.on_gpu) on_gpu.impl(name.c_str(), op.on_gpu());
  }
}

bool has_derivative(const OwnOp& op) {
  const auto handle = c10::Dispatcher::singleton().findSchemaOrThrow(op.rule.op, "");
  return handle.hasKernelForDispatchKey(c10::DispatchKey::Autograd);
}

/// Our own ops have them on every device; LibTorch's are overridden on the mesh, where their decomposition would lose
/// the sharding. An op without one says so to who differentiates it: LibTorch would only warn, and go on with zero.
void define_derivatives() {
  static torch::Library aten(torch::Library::IMPL, "aten", c10::DispatchKey::AutogradPrivateUse1, __FILE__, __LINE__);
  static torch::Library mesh(torch::Library::IMPL, "mesh", c10::DispatchKey::Autograd, __FILE__, __LINE__);
  for (const auto family : kFamilies)
    if (const auto register_derivatives = family().register_derivatives) register_derivatives(aten, mesh);
  for (const auto& op : all_own_ops())
    if (!has_derivative(op)) mesh.impl(op.name().c_str(), torch::autograd::autogradNotImplementedFallback());
}

}  // namespace

std::span<const OwnOp> all_own_ops() {
  static const auto all = put_together();
  return all;
}

void define_own_ops() {
  static const bool once = (define_kernels(), define_derivatives(), true);
  (void)once;
}

}  // namespace lockstep
