#pragma once
#include <cstdint>
#include <functional>

#include "core/elementary/instruction_set.h"
#include "runtime/kernels/products/product_plan.h"

/// Matrix products along the one tree (sum_tree.h), on raw memory. The bits of an element depend on the values of its
/// row of A, its row of B and the contraction, on nothing else: not on sizes, strides, tiles, threads, alignment or the
/// instruction set. product_oracle.h is the same in the plainest words.
namespace lockstep::kernels {

/// A bfloat16: the high half of a float.
struct Bfloat16 {
  uint16_t bits;
};

/// Element (row, sample, element) of a factor; `data` is the first one that is here. Any strides, 0 included.
template <class T>
struct Factor {
  const T* data;
  int64_t row_stride, sample_stride, element_stride;
};

/// Where node p of element (i, j) goes: data[p * node_stride + i * row_stride + j].
template <class T>
struct ProductOutput {
  T* data;
  int64_t row_stride, node_stride;
};

/// Runs work(0), ..., work(items - 1), on `count` threads at best.
struct Workers {
  int count = 1;
  std::function<void(int64_t items, const std::function<void(int64_t)>& work)> run = nullptr;  ///< none: in turns

  void operator()(int64_t items, const std::function<void(int64_t)>& work) const;
};

/// out(p, i, j) = node p of the sum over samples of the sums over elements of A(i, ...) * B(j, ...): rows of both are
/// free, the nodes are nodes_of(contraction). In a leaf one chain of fma from +0; 16-bit factors are widened first. +0
/// is added to each node, which gives the same bits as adding it to each leaf (only sums of nothing but -0 differ).
/// T: float and double; Input: T, and Bfloat16 where T is float.
template <class Input, class T>
void product(int64_t m, int64_t n, const Factor<Input>& a, const Factor<Input>& b, const Contraction& contraction,
             const ProductOutput<T>& out, const Workers& workers = {}, InstructionSet set = best_instruction_set());

/// The same in the order of a plan, of summands that lie one after the other (as one sample). REQUIRES: something is to
/// be summed.
template <class Input, class T>
void product_along(int64_t m, int64_t n, const Factor<Input>& a, const Factor<Input>& b, const ProductPlan& plan,
                   const ProductOutput<T>& out, const Workers& workers = {},
                   InstructionSet set = best_instruction_set());

}  // namespace lockstep::kernels
