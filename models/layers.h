#pragma once
#include <optional>

#include "models/module.h"

namespace lockstep::models {

/// Token embedding: tokens [...] -> [..., width].
class Embedding : public Module {
 public:
  Embedding(Module& owner, std::string name, int64_t vocabulary, int64_t width, Initial initial,
            int64_t unit = 1);  ///< of the vocabulary
  at::Tensor forward(const at::Tensor& tokens);
  const Parameter& weight() const { return weight_; }

 private:
  Parameter weight_;
};

/// y = x W^T (+ b), W [out, in]; `axes` names W's dimensions. With `parts`, W is fused of them (its bias, if any, not).
class Linear : public Module {
 public:
  struct Options {
    int64_t in, out;
    std::string axes;
    Initial initial;
    std::vector<int64_t> units = {};
    bool bias = false;
    std::vector<Part> parts = {};
  };
  Linear(Module& owner, std::string name, const Options& options);
  at::Tensor forward(const at::Tensor& x);

 private:
  Parameter weight_;
  std::optional<Parameter> bias_;
};

/// Root mean square norm over the last dimension (Zhang and Sennrich, 2019).
class RmsNorm : public Module {
 public:
  RmsNorm(Module& owner, std::string name, int64_t width, double epsilon = 1e-5);
  at::Tensor forward(const at::Tensor& x);

 private:
  Parameter weight_;
  double epsilon_;
};

}  // namespace lockstep::models
