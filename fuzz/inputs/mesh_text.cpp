#include "core/mesh_text.h"

#include "core/error.h"
#include "fuzz/inputs/target.h"

namespace lockstep {

/// A mesh text is refused, or its axes print to a text that reads as the same axes.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  for (const auto text : split_mesh_list(fuzz::text_of(data, size))) try {
      const auto mesh = parse_mesh_text(text);
      fuzz::require_that("parse(print(axes)) == axes",
                         [&] { return parse_mesh_axes(to_text(mesh.axes)) == mesh.axes; });
    } catch (const BadInput&) {
    }
  return 0;
}

}  // namespace lockstep
