#include "fuzz/inputs/target.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace lockstep::fuzz {

std::string file_of(const uint8_t* data, size_t size) {
  static const int memory = ::memfd_create("input", 0);
  require(::ftruncate(memory, 0) == 0 && ::pwrite(memory, data, size, 0) == static_cast<ssize_t>(size), "written");
  return "/proc/self/fd/" + std::to_string(memory);
}

void require(bool holds, std::string_view what) {
  if (holds) return;
  std::fprintf(stderr, "fuzz: does not hold: %.*s\n", static_cast<int>(what.size()), what.data());
  std::abort();
}

}  // namespace lockstep::fuzz
