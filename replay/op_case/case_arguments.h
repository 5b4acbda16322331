#pragma once
#include <ATen/core/function_schema.h>
#include <ATen/core/ivalue.h>

#include <map>
#include <nlohmann/json.hpp>
#include <span>

#include "replay/format/recording.h"
#include "runtime/context/world.h"

/// Arguments of an op as JSON (FORMAT.md, "A case") and back.
namespace lockstep::replay {

/// Tensors are put into `tensors`, for each rank of this process its part. Throws BadInput for what a case cannot hold:
/// generators, tensors of another mesh.
nlohmann::ordered_json arguments_to_json(std::span<const c10::IValue> arguments, const Mesh& mesh,
                                         std::vector<RecordedTensor>& tensors);

/// The inverse, on `mesh`. Throws BadInput for what does not fit the schema or the tensors.
std::vector<c10::IValue> arguments_from_json(const nlohmann::ordered_json& json, const c10::FunctionSchema& schema,
                                             const Mesh& mesh, const std::vector<RecordedTensor>& tensors);

/// A recorded tensor as a plain one (a copy). Throws BadInput where dtype, sizes and bytes do not fit together.
at::Tensor plain_tensor(const RecordedTensor& recorded);

}  // namespace lockstep::replay
