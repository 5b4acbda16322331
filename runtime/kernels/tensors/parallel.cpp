// LibTorch's threads are OpenMP's, of the library (libgomp) that its wheel brings along. What GCC makes of
// `#pragma omp parallel` is written as calls of that library: so any compiler's code runs on the same threads, where
// Clang's pragma would start those of a second library.
#include "runtime/kernels/tensors/parallel.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <atomic>
#include <exception>

extern "C" {
/// Calls run(data) once on each thread; 0 threads: as many as at::set_num_threads() says.
// NOLINTNEXTLINE(readability-identifier-naming): the name is GCC's
void GOMP_parallel(void (*run)(void*), void* data, unsigned threads, unsigned flags);
int omp_get_num_threads();
int omp_get_thread_num();
}

namespace lockstep::kernels {
namespace {

struct Loop {
  int64_t first, last, grain;
  const std::function<void(int64_t, int64_t)>& work;
  std::atomic_flag failed = ATOMIC_FLAG_INIT;
  std::exception_ptr failure = nullptr;  // the first one's
};

int64_t round_up_quotient(int64_t of, int64_t by) { return (of + by - 1) / by; }

void run_part(Loop& loop, int64_t thread, int64_t threads) {
  const int64_t count = loop.last - loop.first;
  const int64_t parts = std::min(threads, round_up_quotient(count, std::max<int64_t>(loop.grain, 1)));
  const int64_t size = round_up_quotient(count, parts);
  const int64_t begin = loop.first + thread * size;
  if (begin >= loop.last) return;
  const at::internal::ThreadIdGuard thread_id(static_cast<int>(thread));
  const c10::ParallelGuard in_parallel(true);
  loop.work(begin, std::min(loop.last, begin + size));
}

void run_thread(void* data) {
  auto& loop = *static_cast<Loop*>(data);
  try {
    run_part(loop, omp_get_thread_num(), omp_get_num_threads());
  } catch (...) {
    if (!loop.failed.test_and_set()) loop.failure = std::current_exception();
  }
}

}  // namespace

void parallel_for(int64_t first, int64_t last, int64_t grain, const std::function<void(int64_t, int64_t)>& work) {
  if (first >= last) return;
  Loop loop{first, last, grain, work};
  const bool alone =
      last - first <= grain || last - first == 1 || at::in_parallel_region() || at::get_num_threads() == 1;
  if (alone) return run_part(loop, 0, 1);
  GOMP_parallel(run_thread, &loop, 0, 0);
  if (loop.failure) std::rethrow_exception(loop.failure);
}

}  // namespace lockstep::kernels
