#include "runtime/dispatch/backend.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <c10/core/AutogradState.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/library.h>

#include <set>

#include "runtime/dispatch/as_strided.h"
#include "runtime/dispatch/composed/kernels.h"
#include "runtime/dispatch/dispatch.h"
#include "runtime/dispatch/native_kernels.h"
#include "runtime/dispatch/without_row.h"
#include "runtime/own_ops/own_ops.h"
#include "runtime/planning/make_plan.h"
#include "runtime/planning/rules/built_in_rules.h"

namespace lockstep {
namespace {

/// One device, one stream, nothing to wait for: work is done when a call returns.
struct MeshGuard final : c10::impl::DeviceGuardImplInterface {
  static constexpr c10::DeviceType static_type = c10::DeviceType::PrivateUse1;
  static c10::Device device() { return {static_type, 0}; }
  static c10::Stream stream() { return c10::Stream(c10::Stream::DEFAULT, device()); }

  c10::DeviceType type() const override { return static_type; }
  c10::Device exchangeDevice(c10::Device) const override { return device(); }
  c10::Device getDevice() const override { return device(); }
  void setDevice(c10::Device) const override {}
  void uncheckedSetDevice(c10::Device) const noexcept override {}
  c10::Stream getStream(c10::Device) const override { return stream(); }
  c10::Stream getDefaultStream(c10::Device) const override { return stream(); }
  c10::Stream exchangeStream(c10::Stream given) const override { return given; }
  c10::DeviceIndex deviceCount() const noexcept override { return 1; }
  void record(void**, const c10::Stream&, const c10::DeviceIndex, const c10::EventFlag) const override {}
  void block(void*, const c10::Stream&) const override {}
  bool queryEvent(void*) const override { return true; }
  void destroyEvent(void*, const c10::DeviceIndex) const noexcept override {}
};

struct MeshHooks final : at::PrivateUse1HooksInterface {
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
  const at::Generator& getDefaultGenerator(c10::DeviceIndex) const override {
    static const auto generator = at::detail::createCPUGenerator();
    return generator;
  }
  at::Generator getNewGenerator(c10::DeviceIndex) const override { return at::detail::createCPUGenerator(); }
};

/// Ops with an implicit decomposition that are taken whole all the same: theirs folds dimensions and forces gathers, or
/// (silu_backward) they have derivative formulas and kernels of their own.
bool taken_whole(const std::string& name) {
  static const std::set<std::string> names{"linear", "matmul", "silu_backward"};
  return names.contains(name);
}

void register_ops() {
  static torch::Library library(torch::Library::IMPL, "aten", c10::DispatchKey::PrivateUse1, __FILE__, __LINE__);
  static torch::Library autograd(torch::Library::IMPL, "aten", c10::DispatchKey::AutogradPrivateUse1, __FILE__,
                                 __LINE__);
  register_native_kernels(library);
  register_as_strided(library, autograd);
  register_composed_kernels(library);
  const auto rules = built_in_rules();
  for (const auto& full : c10::Dispatcher::singleton().getAllOpNames()) {
    if (!full.name.starts_with("aten::")) continue;
    const auto op = c10::Dispatcher::singleton().findOp(full);
    if (!op || !op->hasSchema()) continue;
    const auto& name = op_name(*op);
    const bool decomposes = op->hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd);
    const bool by_hand =
        native_kernels().contains(name) || composed_kernels().contains(name) || refused_by_hand().contains(name);
    if (by_hand || (decomposes && !taken_whole(name))) continue;
    library.impl(name.c_str(), rules->find(name) ? torch::CppFunction::makeFromBoxedFunction<&dispatch>()
                                                 : torch::CppFunction::makeFromBoxedFunction<&dispatch_without_row>());
  }
}

void register_own_ops() {
  define_own_ops();
  static torch::Library library(torch::Library::IMPL, "mesh", c10::DispatchKey::PrivateUse1, __FILE__, __LINE__);
  for (const auto& op : all_own_ops())
    library.impl(op.name().c_str(), torch::CppFunction::makeFromBoxedFunction<&dispatch>());
}

/// Ops of other libraries (TORCH_LIBRARY): a row that a World was given serves them, or a clear error says that none
/// does.
void register_others_ops() {
  static torch::Library library(torch::Library::IMPL, "_", c10::DispatchKey::PrivateUse1, __FILE__, __LINE__);
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&dispatch_without_row>());
}

void register_everything() {
  static MeshGuard guard;
  static c10::impl::DeviceGuardImplRegistrar registrar(MeshGuard::static_type, &guard);
  at::RegisterPrivateUse1HooksInterface(new MeshHooks);  // LibTorch keeps it for good
  c10::register_privateuse1_backend("mesh");
  register_own_ops();
  register_ops();
  register_others_ops();
}

}  // namespace

void register_backend() {
  static const bool once = (register_everything(), true);
  (void)once;
  thread_local const bool here = [] {
    auto& state = c10::AutogradState::get_tls_state();
    state.set_multithreading_enabled(false);
    state.set_view_replay_enabled(true);
    return true;
  }();
  (void)here;
}

/// Keeps this file in every program that links the folder (CMake names it), so that a World finds its backend.
extern "C" bool lockstep_backend_is_known;
bool lockstep_backend_is_known = (World::on_construction(&register_backend), true);

}  // namespace lockstep
