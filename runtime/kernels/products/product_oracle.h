#pragma once
#include "runtime/kernels/products/product_loops.h"

namespace lockstep::kernels {

/// What `product` computes, one element after the other, written down as the contract says it. Slow; for tests and the
/// self-test at start.
template <class Input, class T>
void product_oracle(int64_t m, int64_t n, const Factor<Input>& a, const Factor<Input>& b,
                    const Contraction& contraction, const ProductOutput<T>& out);

}  // namespace lockstep::kernels
