#pragma once
#include <string>
#include <vector>

#include "models/module.h"
#include "models/quantized_linear.h"

namespace lockstep::models {

/// What became of a model's linear maps.
struct QuantizedLinears {
  std::vector<std::string> converted, left;  ///< paths
};

/// Makes the model's linear maps (models::Linear) quantised ones, but for those whose name holds one of `left_out` and
/// those that have a size that is no multiple of 16, as torchtitan's module_filter_fn() does
/// (torchtitan/components/quantization/utils.py). A map's names are its path and those that its weight is stored by:
/// "layers.0.attention.qkv", "layers.0.attention.wq". With `gather_as_float8` weights are quantised before they are
/// gathered.
///
/// Throws BadInput for a name that no linear map has ("output" may be a tied head), and for one of a part of a fused
/// map.
QuantizedLinears quantize_linears(Model& model, const LinearQuantization& quantization,
                                  const std::vector<std::string>& left_out, bool gather_as_float8);

}  // namespace lockstep::models
