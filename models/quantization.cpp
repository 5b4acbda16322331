#include "models/quantization.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "core/error.h"
#include "models/layers.h"

namespace lockstep::models {
namespace {

constexpr int64_t kMultiple = 16;  // of the tensor cores that torchtitan's linear maps run on

std::vector<Linear*> linears_of(const Model& model) {
  std::vector<Linear*> all;
  for (auto* module : model.modules())
    if (auto* linear = dynamic_cast<Linear*>(module)) all.push_back(linear);
  return all;
}

/// Of each part of its weight, without the parameter's own name.
std::vector<std::string> stored_names(Linear& linear) {
  std::vector<std::string> names;
  for (const auto& part : linear.weight().division().parts())
    names.push_back(part.name.substr(0, part.name.rfind('.')));
  return names;
}

bool holds(const std::string& name, const std::string& wanted) { return name.find(wanted) != name.npos; }

/// Whether `wanted` names it, or all of its parts.
bool is_named(Linear& linear, const std::string& wanted) {
  if (holds(linear.path(), wanted)) return true;
  const auto parts = stored_names(linear);
  const auto count = std::count_if(parts.begin(), parts.end(), [&](const auto& part) { return holds(part, wanted); });
  return count > 0 && count == static_cast<ptrdiff_t>(parts.size());
}

/// Parts of a fused map are left out together: "attention.wq", "attention.wk" and "attention.wv".
bool is_left_out(Linear& linear, const std::vector<std::string>& left_out) {
  if (std::any_of(left_out.begin(), left_out.end(), [&](const auto& name) { return is_named(linear, name); }))
    return true;
  std::vector<std::string> named, others;
  for (const auto& part : stored_names(linear)) {
    const bool is = std::any_of(left_out.begin(), left_out.end(), [&](const auto& name) { return holds(part, name); });
    (is ? named : others).push_back(part);
  }
  if (!named.empty() && !others.empty())
    fail<BadInput>("filter_fqns leaves out {}, which is one linear map with {} here: leave out all of them, or none.",
                   fmt::join(named, " and "), fmt::join(others, " and "));
  return !named.empty();
}

void require_known(const std::vector<Linear*>& linears, const std::vector<std::string>& left_out) {
  for (const auto& name : left_out) {
    const bool known = std::any_of(linears.begin(), linears.end(), [&](Linear* linear) {
      const auto parts = stored_names(*linear);
      return holds(linear->path(), name) ||
             std::any_of(parts.begin(), parts.end(), [&](const auto& part) { return holds(part, name); });
    });
    if (known || name == "output") continue;
    std::vector<std::string> names;
    for (auto* linear : linears) names.push_back(linear->path());
    fail<BadInput>("filter_fqns has \"{}\", which is in no name of a linear map; those are {}.", name,
                   fmt::join(names, ", "));
  }
}

bool fits(Linear& linear) {
  const auto& sizes = linear.weight().sizes();
  return std::all_of(sizes.begin(), sizes.end(), [](int64_t size) { return size % kMultiple == 0; });
}

}  // namespace

QuantizedLinears quantize_linears(Model& model, const LinearQuantization& quantization,
                                  const std::vector<std::string>& left_out, bool gather_as_float8) {
  const auto linears = linears_of(model);
  require_known(linears, left_out);
  QuantizedLinears result;
  for (auto* linear : linears) {
    const bool is_left = is_left_out(*linear, left_out) || !fits(*linear);
    (is_left ? result.left : result.converted).push_back(linear->path());
    if (is_left) continue;
    linear->quantize(quantization);
    if (gather_as_float8) linear->weight().gather_as_float8();
  }
  return result;
}

}  // namespace lockstep::models
