#if defined(LOCKSTEP_TCMALLOC)
#  include <gperftools/malloc_extension.h>
#endif

#include "tools/lockstep/commands.h"
#include "trainer/plugin/load_plugin.h"

namespace lockstep::tool {

const bool kIsFront = false;

namespace {

/// Memory that a step frees serves the next step: given back to the system it would return as page faults (3 % of a
/// step). tcmalloc, because glibc's allocator searches its lists for each of the many blocks of simulated ranks: with
/// 512 of them that took a fifth of a step.
[[maybe_unused]] const bool kKeepsMemory = [] {
#if defined(LOCKSTEP_TCMALLOC)
  MallocExtension::instance()->SetMemoryReleaseRate(0);
#endif
  return true;
}();

}  // namespace

std::vector<std::string> use_plugins(const std::vector<std::string>& files) {
  std::vector<std::string> loaded;
  for (const auto& file : files) loaded.push_back(trainer::load_plugin(file));
  return loaded;
}

}  // namespace lockstep::tool
