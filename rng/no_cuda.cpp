#include "core/error.h"
#include "rng/cuda_fill.h"

namespace lockstep::rng {
namespace {
constexpr const char* kReason = "built without CUDA (configure with -DLOCKSTEP_CUDA=ON)";
}

std::string cuda_unavailable_reason() { return kReason; }

void cuda_fill(void*, ScalarKind, const Distribution&, Key, uint64_t, const Subarray&, void*) {
  fail<BadInput>("random numbers on a GPU: {}", kReason);
}

void cuda_fill_host(void*, std::size_t, ScalarKind, const Distribution&, Key, uint64_t, const Subarray&) {
  fail<BadInput>("random numbers on a GPU: {}", kReason);
}

}  // namespace lockstep::rng
