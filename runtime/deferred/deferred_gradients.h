#pragma once
#include <ATen/core/Tensor.h>

#include <deque>
#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/batch_rows.h"

namespace lockstep {

/// Gradients of linear maps' weights that wait: a backward under a Scope computes what its inputs' gradients need, and
/// run() the rest. Zero-bubble pipelines fill their gaps with it (Qi et al., "Zero Bubble Pipeline Parallelism", ICLR
/// 2024, section 2).
class DeferredGradients {
 public:
  using Gradient = std::function<at::Tensor()>;

  /// For as long as it lives, backwards of this thread put off what they may. When it ends, weights that were allowed
  /// are let go.
  class Scope {
   public:
    explicit Scope(DeferredGradients& gradients);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    DeferredGradients& gradients_;
    DeferredGradients* previous_;
  };

  /// The gradient of this weight may wait; run() calls it by this number. REQUIRES: it is a leaf, so that nothing but
  /// run()'s caller needs its gradient.
  void allow(const at::Tensor& weight, size_t number);

  /// Numbers of what was put off, in the order in which it was: a weight once for each of its uses.
  std::vector<size_t> waiting() const;

  /// Computes the first of waiting() and gives it to `take`, in the module and rows of the op whose backward it is.
  void run_first(const std::function<void(const at::Tensor& gradient)>& take);

  /// Of a backward that runs: whether this weight's gradient may wait. Costs next to nothing where none does.
  static bool may_wait(const at::Tensor& weight);
  /// Leaves it to run_first(). `gradient` should hold no more than its factors. REQUIRES: may_wait(weight).
  static void put_off(const at::Tensor& weight, Gradient gradient);

 private:
  struct Allowed {
    at::Tensor weight;
    size_t number;
  };
  struct PutOff {
    size_t number;
    Gradient gradient;
    std::string module;
    BatchRows rows;
  };

  std::unordered_map<const c10::TensorImpl*, Allowed> allowed_;
  std::deque<PutOff> put_off_;
};

}  // namespace lockstep
