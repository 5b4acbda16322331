#include <cstdlib>  // says whether this is glibc
#if defined(__GLIBC__)
#  include <malloc.h>
#endif

#include "tools/lockstep/commands.h"
#include "trainer/plugin/load_plugin.h"

namespace lockstep::tool {

const bool kIsFront = false;

namespace {

/// Memory that a step frees serves the next step: given back to the system it would return as page faults (3 % of a
/// step). Blocks above 32 MB, glibc's limit, still come and go.
[[maybe_unused]] const bool kKeepsMemory = [] {
#if defined(__GLIBC__)
  return mallopt(M_MMAP_THRESHOLD, 32 << 20) == 1 && mallopt(M_TRIM_THRESHOLD, 2'000'000'000) == 1;
#else
  return false;
#endif
}();

}  // namespace

std::vector<std::string> use_plugins(const std::vector<std::string>& files) {
  std::vector<std::string> loaded;
  for (const auto& file : files) loaded.push_back(trainer::load_plugin(file));
  return loaded;
}

}  // namespace lockstep::tool
