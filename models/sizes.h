#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/error.h"

/// Sizes of models: flavors, what fits, and where a mesh may cut so that canonical sums need no gather (sum_tree.h).
namespace lockstep::models {

/// Sizes that have a name.
template <class Options>
struct Flavor {
  const char* name;
  Options options;
};

template <class Options>
std::vector<std::string> names_of(std::span<const Flavor<Options>> flavors) {
  std::vector<std::string> names;
  for (const auto& flavor : flavors) names.emplace_back(flavor.name);
  return names;
}

/// Throws BadInput: model.flavor 9B is not known for llama3; choose one of debugmodel, 1B.
[[noreturn]] void fail_unknown_flavor(const char* model, const std::string& name,
                                      const std::vector<std::string>& known);

/// Those of `model` by the name. Throws BadInput naming the choices.
template <class Options>
const Options& flavor_of(const char* model, std::span<const Flavor<Options>> flavors, const std::string& name) {
  for (const auto& flavor : flavors)
    if (flavor.name == name) return flavor.options;
  fail_unknown_flavor(model, name, names_of(flavors));
}

/// Throws BadInput, naming the job keys, unless model.KEY, which is `size`, is a multiple of model.OF, which is `unit`.
void require_multiple(const char* key, int64_t size, const char* of, int64_t unit);

/// "dropout 0.1", and that of attention's weights if it is not 0.
template <class Options>
std::string dropout_text(const Options& options) {
  auto text = fmt::format("dropout {}", options.dropout);
  if (!(options.attention_dropout > 0)) return text;
  return text + fmt::format(", attention_dropout {}", options.attention_dropout);
}

/// The leaf of a canonical sum over so many elements.
int64_t leaf_of(int64_t elements);

/// The fewest of `groups` groups, of so many `rows` of a produced and `columns` of a consuming weight, that end between
/// leaves of the sums over both.
int64_t groups_per_leaf(int64_t groups, int64_t rows, int64_t columns);

}  // namespace lockstep::models
