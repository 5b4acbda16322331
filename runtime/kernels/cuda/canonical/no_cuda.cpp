#include "core/error.h"
#include "runtime/kernels/cuda/canonical/canonical_kernels.h"

namespace lockstep::cuda::canonical {
namespace {

[[noreturn]] void refuse() { fail<InternalError>("canonical kernels for a GPU: built without CUDA"); }

}  // namespace

template <class Input>
void product(int64_t, int64_t, const Factor<Input>&, const Factor<Input>&, const Contraction&,
             const kernels::ProductOutput<float>&) {
  refuse();
}
template void product(int64_t, int64_t, const Factor<float>&, const Factor<float>&, const Contraction&,
                      const kernels::ProductOutput<float>&);
template void product(int64_t, int64_t, const Factor<Bfloat16>&, const Factor<Bfloat16>&, const Contraction&,
                      const kernels::ProductOutput<float>&);

template <class Input>
void attention_forward(const kernels::AttentionForward<Input, float>&) {
  refuse();
}
template <class Input>
void attention_backward(const kernels::AttentionBackward<Input, float>&, float*) {
  refuse();
}
template void attention_forward(const kernels::AttentionForward<float, float>&);
template void attention_forward(const kernels::AttentionForward<Bfloat16, float>&);
template void attention_backward(const kernels::AttentionBackward<float, float>&, float*);
template void attention_backward(const kernels::AttentionBackward<Bfloat16, float>&, float*);

void ordered_sum(const OrderedSum&, const float*, float*) { refuse(); }
void ordered_exponential_sum(const OrderedSum&, const float*, const float*, float*) { refuse(); }
void ordered_norm_gradient(const OrderedSum&, const float*, const float*, const float*, float*) { refuse(); }
void table_gradient(const kernels::loops::TableGradient&, const int64_t*, const int64_t*, const float*, float*) {
  refuse();
}
void rms_norm(Rows, const float*, const float*, float*, float*, float) { refuse(); }
void rms_norm_input_gradient(Rows, const float*, const float*, const float*, const float*, float*) { refuse(); }
void cross_entropy_backward(Rows, const float*, const float*, const float*, const int64_t*, float*) { refuse(); }
void swiglu(Rows, const float*, float*) { refuse(); }
void swiglu_backward(Rows, const float*, const float*, float*) { refuse(); }
void softmax(Rows, const float*, float*) { refuse(); }
void log_softmax(Rows, const float*, float*) { refuse(); }
void softmax_backward(Rows, const float*, const float*, float*) { refuse(); }
void log_softmax_backward(Rows, const float*, const float*, float*) { refuse(); }
void apply(kernels::loops::Function, int64_t, const float*, float*) { refuse(); }
void apply(kernels::loops::Gradient, int64_t, const float*, const float*, float*) { refuse(); }
void nearest(NumberFormat, int64_t, const float*, float*) { refuse(); }
void scales(NumberFormat, bool, int64_t, const float*, float*) { refuse(); }
void float8_codes(NumberFormat, int64_t, const float*, uint8_t*) { refuse(); }
void float8_numbers(NumberFormat, int64_t, const uint8_t*, float*) { refuse(); }
void nearest_in_blocks(NumberFormat, const kernels::loops::BlockShape&, const float*, float*) { refuse(); }
template <class T>
void hadamard(int64_t, int64_t, T, T*) {
  refuse();
}
template void hadamard(int64_t, int64_t, float, float*);
template void hadamard(int64_t, int64_t, double, double*);

}  // namespace lockstep::cuda::canonical
