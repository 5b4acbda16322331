#include "core/error.h"
#include "fuzz/inputs/target.h"
#include "runtime/context/world.h"
#include "runtime/tensor/layout.h"

namespace lockstep {

/// A layout text is refused, or prints to a text that reads as the same layout.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static World world({.rank_count = 12});
  static const Mesh& mesh = world.mesh("dp=3,cp=2,tp=2");
  try {
    const auto layout = Layout::parse(mesh, fuzz::text_of(data, size));
    fuzz::require_that("parse(print(layout)) == layout", [&] { return Layout::parse(mesh, layout.text()) == layout; });
  } catch (const BadInput&) {
  }
  return 0;
}

}  // namespace lockstep
