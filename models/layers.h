#pragma once
#include <ATen/TensorOperators.h>

#include <optional>

#include "models/low_rank.h"
#include "models/module.h"
#include "models/quantized_linear.h"

namespace lockstep::models {

/// x of 16 bits in float32 where the parameter asks for it (Parameter::compute_in_float32).
at::Tensor widened_for(const at::Tensor& parameter, const at::Tensor& x);
/// What came of that in the type that was taken.
at::Tensor given_as(const at::Tensor& taken, const at::Tensor& given);

/// A table with a row for each token or position: rows [...] (int64) -> [..., width]; `axis` names what it has rows
/// for.
class Embedding : public Module {
 public:
  Embedding(Module& owner, std::string name, int64_t count, int64_t width, Initial initial, int64_t unit = 1,
            const std::string& axis = "vocab");
  at::Tensor forward(const at::Tensor& rows);
  const Parameter& weight() const { return weight_; }

 private:
  Parameter weight_;
};

/// y = x W^T (+ b), W [out, in]; `axes` names W's dimensions. With `parts` W is fused of them, b of `bias_parts`.
class Linear : public Module {
 public:
  struct Options {
    int64_t in, out;
    std::string axes;
    Initial initial;
    std::vector<int64_t> units = {};
    bool bias = false;
    std::vector<Part> parts = {};
    std::vector<Part> bias_parts = {};
  };
  Linear(Module& owner, std::string name, const Options& options);
  at::Tensor forward(const at::Tensor& x);
  /// The same in the type that it computes in: logits, which nothing needs to be rounded for.
  at::Tensor unrounded(const at::Tensor& x);

  /// Its products become those of quantised factors (models/quantization.h).
  void quantize(const LinearQuantization& quantization) { quantization_ = quantization; }
  const std::optional<LinearQuantization>& quantization() const { return quantization_; }
  Parameter& weight() { return weight_; }
  /// From now on W is changed by what of low rank is trained in its place. REQUIRES: no tensor was assigned yet.
  void adapt(const LowRankOptions& options) { change_ = std::make_unique<LowRankChange>(*this, weight_, options); }
  /// Null: W is as it is.
  LowRankChange* change() { return change_.get(); }

 private:
  at::Tensor quantized(const at::Tensor& x, const std::optional<at::Tensor>& bias) const;

  Parameter weight_;
  std::optional<Parameter> bias_;
  std::unique_ptr<LowRankChange> change_;
  std::optional<LinearQuantization> quantization_;
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

/// Mean and variance norm over the last dimension, scaled and shifted (Ba et al., 2016).
class LayerNorm : public Module {
 public:
  LayerNorm(Module& owner, std::string name, int64_t width, double epsilon = 1e-5);
  at::Tensor forward(const at::Tensor& x);

 private:
  Parameter weight_, bias_;
  double epsilon_;
};

/// x of training without a `share` of its elements, the others larger by as much; x itself where that is 0.
at::Tensor dropped(const at::Tensor& x, double share);

/// x + dropout(branch(norm(x))), x [batch, length, embed]: the norm has each position once, the branch those of a rank.
template <class Norm, class Branch>
at::Tensor residual(const at::Tensor& x, Norm& norm, double dropout, const Branch& branch) {
  const auto output = branch(annotate(norm.forward(x), "batch length embed"));
  return x + dropped(annotate(output, "batch norm_length embed"), dropout);
}

}  // namespace lockstep::models
