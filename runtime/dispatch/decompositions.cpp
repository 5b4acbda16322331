// Decompositions of LibTorch's that have been tried on meshes: fuzz/cases has a call of each.
#include <algorithm>
#include <array>

#include "runtime/dispatch/service.h"

namespace lockstep {
namespace {

constexpr std::string_view kTried[] = {
    "addr",
    "celu",
};
static_assert(std::is_sorted(std::begin(kTried), std::end(kTried)));

}  // namespace

bool decomposition_is_tried(const std::string& op) {
  return std::binary_search(std::begin(kTried), std::end(kTried), std::string_view(op));
}

}  // namespace lockstep
