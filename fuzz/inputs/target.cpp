#include "fuzz/inputs/target.h"

#include <cstdio>
#include <cstdlib>

namespace lockstep::fuzz {

void require(bool holds, std::string_view what) {
  if (holds) return;
  std::fprintf(stderr, "fuzz: does not hold: %.*s\n", static_cast<int>(what.size()), what.data());
  std::abort();
}

}  // namespace lockstep::fuzz
