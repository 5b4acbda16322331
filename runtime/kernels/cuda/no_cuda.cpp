#include "core/error.h"
#include "runtime/kernels/cuda/cuda_kernels.h"

namespace lockstep::cuda {
namespace {

[[noreturn]] void refuse() { fail<InternalError>("kernels for a GPU: built without CUDA"); }

}  // namespace

bool has_kernels() { return false; }

void rms_norm(Element, Rows, const void*, const void*, float, void*, float*) { refuse(); }
int64_t norm_parts(Rows) { refuse(); }
void rms_norm_backward(Element, Rows, const void*, const void*, const float*, const void*, void*, float*) { refuse(); }
void swiglu(Element, Rows, const void*, void*) { refuse(); }
void swiglu_backward(Element, Rows, const void*, const void*, void*) { refuse(); }
void rotate_pairs(Element, HeadSizes, HeadStrides, const void*, const float*, const float*, bool, void*) { refuse(); }
void exponential_sum(Element, Rows, const void*, const float*, float*) { refuse(); }
void cross_entropy_backward(Element, Rows, const float*, const void*, const float*, const int64_t*, void*) { refuse(); }
void float8_codes(Element, elementary::NumberFormat, const ScaledRows&, const void*, const float*, uint8_t*) {
  refuse();
}
void transpose_bytes(int64_t, int64_t, const uint8_t*, uint8_t*) { refuse(); }
void adamw(int64_t, float*, const float*, float*, float*, const kernels::loops::AdamwStep<float>&) { refuse(); }
int64_t square_parts(int64_t) { refuse(); }
void sum_of_squares(Element, int64_t, const void*, double*) { refuse(); }
void place_sums(int64_t, const uint32_t*, uint64_t, const PlaceBox&, uint64_t*, uint64_t*) { refuse(); }

}  // namespace lockstep::cuda
