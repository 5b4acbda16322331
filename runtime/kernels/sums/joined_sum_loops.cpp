#include "runtime/kernels/sums/joined_sum_loops.h"

#include <algorithm>

#include "runtime/kernels/simd/best_instruction_set.h"

namespace lockstep::kernels {
namespace {

constexpr int64_t kChunk = 1024;  ///< elements: as many places as a tree is high fit the fastest cache

template <class T>
struct AddArrays {
  LOCKSTEP_PORTABLE static void run(int64_t count, const T* left, const T* right, T* to) {
    for (int64_t i = 0; i < count; ++i) to[i] = left[i] + right[i];
  }
};

}  // namespace

JoinedSum::JoinedSum(const SumTree& tree, std::span<const SumNode> nodes) : nodes_(static_cast<int>(nodes.size())) {
  SumJoiner<int> joiner(tree);
  const auto join = [&](int left, int right) {
    release(left), release(right);
    const int to = free_place();
    steps_.push_back({left, right, to});
    return to;
  };
  for (int n = 0; n < nodes_; ++n) joiner.add(nodes[static_cast<size_t>(n)], n, join);
  parts_ = joiner.parts().size();
  for (size_t p = 0; p < parts_; ++p) {
    const int value = joiner.parts()[p].value, to = nodes_ + places_ + static_cast<int>(p);
    const auto last = std::find_if(steps_.rbegin(), steps_.rend(), [&](const Step& step) { return step.to == value; });
    if (value < nodes_)
      steps_.push_back({value, -1, to});
    else
      last->to = to;
  }
}

int JoinedSum::free_place() {
  if (free_.empty()) return nodes_ + places_++;
  const int place = free_.back();
  free_.pop_back();
  return place;
}

void JoinedSum::release(int value) {
  if (value >= nodes_) free_.push_back(value);
}

template <class T>
void JoinedSum::run(std::span<const T* const> nodes, std::span<T* const> parts, int64_t begin, int64_t end) const {
  std::vector<T> places(static_cast<size_t>(places_ * kChunk));
  const auto at = [&](int value, int64_t first) -> T* {
    if (value < nodes_) return const_cast<T*>(nodes[static_cast<size_t>(value)]) + first;
    const int place = value - nodes_;
    return place < places_ ? places.data() + place * kChunk : parts[static_cast<size_t>(place - places_)] + first;
  };
  for (int64_t first = begin; first < end; first += kChunk) {
    const auto count = std::min(kChunk, end - first);
    for (const auto& [left, right, to] : steps_) {
      if (right < 0)
        std::copy_n(at(left, first), count, at(to, first));
      else
        on_instruction_set<AddArrays<T>>(best_instruction_set(), count, const_cast<const T*>(at(left, first)),
                                         const_cast<const T*>(at(right, first)), at(to, first));
    }
  }
}

template void JoinedSum::run(std::span<const float* const>, std::span<float* const>, int64_t, int64_t) const;
template void JoinedSum::run(std::span<const double* const>, std::span<double* const>, int64_t, int64_t) const;

}  // namespace lockstep::kernels
