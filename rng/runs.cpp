#include "rng/runs.h"

#include <cstddef>

namespace lockstep::rng {

Runs::Runs(const Subarray& subarray) : run_{subarray.base, 1, 0, 1}, done_(subarray.elements() == 0) {
  bool contiguous = true;  // all dimensions so far belong to the run
  uint64_t index_stride = 1;
  for (std::size_t d = subarray.dimensions.size(); d-- > 0;) {
    const auto& dimension = subarray.dimensions[d];
    run_.index += static_cast<uint64_t>(dimension.start) * index_stride;
    if (dimension.length > 1) {
      const bool first = run_.count == 1;
      contiguous = contiguous && index_stride == static_cast<uint64_t>(run_.count) &&
                   (first || dimension.stride == run_.stride * run_.count);
      if (contiguous) {
        if (first) run_.stride = dimension.stride;
        run_.count *= dimension.length;
      } else {
        loops_.insert(loops_.begin(), Loop{dimension.length, index_stride, dimension.stride, 0});
      }
    }
    index_stride *= static_cast<uint64_t>(dimension.global_size);
  }
}

bool Runs::next(Run& run) {
  if (done_) return false;
  run = run_;
  step();
  return true;
}

void Runs::step() {
  for (std::size_t d = loops_.size(); d-- > 0;) {
    auto& loop = loops_[d];
    run_.index += loop.index_stride;
    run_.offset += loop.stride;
    if (++loop.position < loop.length) return;
    run_.index -= loop.index_stride * static_cast<uint64_t>(loop.length);
    run_.offset -= loop.stride * loop.length;
    loop.position = 0;
  }
  done_ = true;
}

}  // namespace lockstep::rng
