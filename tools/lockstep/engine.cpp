#if defined(LOCKSTEP_TCMALLOC)
#  include <gperftools/malloc_extension.h>
#endif

#include "core/error.h"
#include "tools/lockstep/commands.h"
#include "trainer/plugin/load_plugin.h"

namespace lockstep::tool {

const bool kIsFront = false;

/// Memory that a step frees serves the next step: given back to the system it would return as page faults (3 % of a
/// step). tcmalloc, because glibc's allocator searches its lists for each of the many blocks of simulated ranks: with
/// 512 of them that took a fifth of a step.
void set_up_memory() {
#if defined(LOCKSTEP_TCMALLOC)
  auto& allocator = *MallocExtension::instance();
  allocator.SetMemoryReleaseRate(0);
  LOCKSTEP_CHECK(allocator.GetMemoryReleaseRate() < 1e-9, "tcmalloc is not the allocator of this process");
#endif
}

std::vector<std::string> use_plugins(const std::vector<std::string>& files) {
  std::vector<std::string> loaded;
  for (const auto& file : files) loaded.push_back(trainer::load_plugin(file));
  return loaded;
}

}  // namespace lockstep::tool
