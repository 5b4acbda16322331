#include "models/families/llama_options.h"

#include "core/error.h"
#include "models/sizes.h"

namespace lockstep::models {
namespace {

constexpr Flavor<LlamaOptions> kFlavors[] = {
    {"debugmodel", {}},
    {"1B", {2048, 16, 32, 8, 8192, 128256, 2048, true, 500000, 32}},
    {"3B", {3072, 28, 24, 8, 8192, 128256, 2048, true, 500000, 32}},
    {"8B", {4096, 32, 32, 8, 14336, 128256, 2048}},
    {"70B", {8192, 80, 64, 8, 28672, 128256, 2048}},
    {"405B", {16384, 126, 128, 8, 53248, 128256, 2048}},
};

}  // namespace

void require_fitting_sizes(const LlamaOptions& o) {
  if (o.head_width == 0) require_multiple("width", o.width, "heads", o.heads);
  require_multiple("heads", o.heads, "key_value_heads", o.key_value_heads);
  require_multiple("hidden", o.hidden, "key_value_heads", o.key_value_heads);
  if (o.head_size() % 2 != 0)
    fail<BadInput>(
        "model.width {} over model.heads {} gives heads of {} elements, which must be even: rotations turn pairs.",
        o.width, o.heads, o.head_size());
}

LlamaOptions llama_flavor(const std::string& name) { return flavor_of<LlamaOptions>("llama3", kFlavors, name); }

std::vector<std::string> llama_flavors() { return names_of<LlamaOptions>(kFlavors); }

}  // namespace lockstep::models
