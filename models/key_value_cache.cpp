#include "models/key_value_cache.h"

#include <ATen/Functions.h>

#include "models/hooks.h"

namespace lockstep::models {

const KeyValueCache::Entry& KeyValueCache::append(const std::string& path, const at::Tensor& key,
                                                  const at::Tensor& value) {
  auto& entry = layers_[path];
  entry =
      entry.key.defined() ? Entry{at::cat({entry.key, key}, 2), at::cat({entry.value, value}, 2)} : Entry{key, value};
  return entry;
}

KeyValueCache* current_cache() {
  const auto* hooks = Hooks::current();
  return hooks ? hooks->cache() : nullptr;
}

int64_t first_position() {
  const auto* cache = current_cache();
  return cache ? cache->length() : 0;
}

}  // namespace lockstep::models
