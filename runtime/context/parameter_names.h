#pragma once
#include <ATen/core/Tensor.h>

#include <span>
#include <string>
#include <string_view>
#include <unordered_map>

namespace lockstep {

/// Which module the parameters of unannotated torch::nn modules belong to, so that an op that reads one (or a view of
/// one) can say where in the model it is. Parameters are known by the bytes of their first shard; names end with them.
class ParameterNames {
 public:
  /// `name` as registered: "layers.0.fc.weight" belongs to module "layers.0.fc".
  void add(const at::Tensor& parameter, std::string_view name);

  /// The module of the first tensor among `arguments` that is a parameter; empty if none is.
  std::string_view module_of(std::span<const c10::IValue> arguments) const;

 private:
  struct Entry {
    c10::weak_intrusive_ptr<c10::StorageImpl> storage;
    std::string module;
  };
  std::unordered_map<const c10::StorageImpl*, Entry> modules_;
};

}  // namespace lockstep
