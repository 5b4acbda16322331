#include "runtime/context/parameter_names.h"

#include <ATen/core/ivalue.h>

#include "runtime/tensor/sharded_tensor.h"

namespace lockstep {
namespace {

/// The bytes of a tensor's first shard, or null: not sharded, no shard here, or none yet (asking must not move data).
c10::StorageImpl* storage_of(const at::Tensor& tensor) {
  if (!is_sharded(tensor) || sharded(tensor).shards()->is_pending()) return nullptr;
  const auto& shards = sharded(tensor).shards()->local_tensors();
  return shards.empty() ? nullptr : shards[0].storage().unsafeGetStorageImpl();
}

}  // namespace

void ParameterNames::add(const at::Tensor& parameter, std::string_view name) {
  const auto* storage = storage_of(parameter);
  if (!storage) return;
  const auto dot = name.rfind('.');
  const auto& shared = sharded(parameter).shards()->local_tensors()[0].storage();
  modules_.insert_or_assign(storage, Entry{shared.getWeakStorageImpl(),
                                           std::string(dot == name.npos ? std::string_view{} : name.substr(0, dot))});
}

std::string_view ParameterNames::module_of(std::span<const c10::IValue> arguments) const {
  if (modules_.empty()) return {};
  for (const auto& argument : arguments) {
    if (!argument.isTensor()) continue;
    const auto found = modules_.find(storage_of(argument.toTensor()));
    if (found != modules_.end() && !found->second.storage.expired()) return found->second.module;
  }
  return {};
}

}  // namespace lockstep
