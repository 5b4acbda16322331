#pragma once
#include <ATen/Parallel.h>

namespace lockstep::testing {

/// LibTorch's number of threads within a scope.
class Threads {
 public:
  explicit Threads(int count) { at::set_num_threads(count); }
  ~Threads() { at::set_num_threads(before_); }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

 private:
  int before_ = at::get_num_threads();
};

}  // namespace lockstep::testing
