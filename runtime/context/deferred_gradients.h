#pragma once
#include <ATen/core/Tensor.h>

#include <functional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/batch_rows.h"

namespace lockstep {

/// Gradients of linear maps' weights that wait: a backward under a Scope computes what its inputs' gradients need, and
/// run() the rest. Zero-bubble pipelines fill their gaps with it (Qi et al., "Zero Bubble Pipeline Parallelism", ICLR
/// 2024, section 2).
class DeferredGradients {
 public:
  using Gradient = std::function<at::Tensor()>;

  /// For as long as it lives, backwards of this thread put off what they may.
  class Scope {
   public:
    explicit Scope(DeferredGradients& gradients);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    DeferredGradients* previous_;
  };

  /// The gradient of this weight may wait. REQUIRES: it is a leaf, so that nothing but run()'s caller needs it.
  void allow(const at::Tensor& weight);

  /// Computes what was put off, in the order in which it was, as the ops whose backward it is: the same values, and the
  /// same ids. A weight comes once for each of its uses.
  std::vector<std::pair<at::Tensor, at::Tensor>> run();

  /// gradient(), of a backward that runs; or undefined if it may wait.
  static at::Tensor now_or_later(const at::Tensor& weight, Gradient gradient);

 private:
  struct PutOff {
    at::Tensor weight;
    Gradient gradient;
    std::string module;
    BatchRows rows;
  };

  std::unordered_map<const c10::TensorImpl*, at::Tensor> allowed_;
  std::vector<PutOff> put_off_;
};

}  // namespace lockstep
