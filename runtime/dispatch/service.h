#pragma once
#include <ATen/core/dispatch/Dispatcher.h>

#include <string>
#include <string_view>
#include <vector>

#include "runtime/planning/rule_set.h"

namespace lockstep {

/// How one overload of LibTorch's is served on a mesh.
struct Service {
  enum Way {
    kRow,            ///< a row of its own
    kInPlace,        ///< the row of its functional overload
    kOut,            ///< the functional overload, then a copy
    kForeach,        ///< tensor by tensor
    kDecomposition,  ///< LibTorch's own, into ops that are served
    kWhole,          ///< every rank computes all of it (whole_ops.h)
    kKernel,         ///< a kernel at the mesh key (runtime/dispatch/native_kernels.cpp)
    kMissing,
  };
  Way way = kMissing;
  std::string row;     ///< of kRow and kInPlace; of kOut the functional overload
  std::string reason;  ///< of kMissing, one line: why, and what to use instead
};

Service service_of(const RuleSet& rules, const c10::OperatorHandle& op);

/// "row", "in place", "out", "foreach", "decomposition", "whole", "kernel", "missing"
std::string_view to_text(Service::Way way);

/// One overload, as `lockstep rules` lists it.
struct Served {
  std::string name;
  Service service;
  bool functional = false;  ///< no in-place, out= or foreach form
};

/// Every overload of LibTorch's that has to do with tensors, by name; then the ops of our own.
std::vector<Served> all_served(const RuleSet& rules);

/// Decompositions of LibTorch's that the properties of tests/runtime/planning have tried on meshes; sorted.
bool decomposition_is_tried(const std::string& op);

/// Whether LibTorch's own decomposition touches a storage, which no mesh has.
bool touches_a_storage(std::string_view op);

/// Why there is no rule, for what is left; one line.
std::string reason_for_none(const c10::OperatorHandle& op);

}  // namespace lockstep
