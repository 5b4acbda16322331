#pragma once
#include "runtime/kernels/attention/attention_loops.h"

namespace lockstep::kernels {

/// What an instruction set is asked for: query rows [first, first + rows) of all query heads of one key-value head.
template <class Input, class T>
struct ForwardPiece {
  const AttentionForward<Input, T>* work;
  int64_t batch, head, first, rows;
};

/// All of one key-value head.
template <class Input, class T>
struct BackwardPiece {
  const AttentionBackward<Input, T>* work;
  const ProductPlan* plan;  ///< over query rows, each leaf a group
  int64_t batch, head;
};

template <class Input, class T>
struct AttentionKernels {
  void (*forward)(const ForwardPiece<Input, T>& piece);
  void (*backward)(const BackwardPiece<Input, T>& piece);
};

template <class Input, class T>
const AttentionKernels<Input, T>& baseline_attention();
template <class Input, class T>
const AttentionKernels<Input, T>& avx2_attention();
template <class Input, class T>
const AttentionKernels<Input, T>& avx512_attention();

}  // namespace lockstep::kernels
