#pragma once
#include <memory>
#include <optional>
#include <string>

#include "models/families/llama_layers.h"
#include "models/families/router.h"

namespace lockstep::models {

/// The feed-forwards of all experts: w1, w3 [count, hidden, width], w2 [count, width, hidden], as torchtitan stores
/// them.
class Experts : public Module {
 public:
  Experts(Module& owner, std::string name, const ExpertOptions& options, const LlamaOptions& dense, int64_t layer);
  /// rows [batch, count, length, width], a row for each token that chose an expert (mesh_ops::expert_rows()).
  at::Tensor forward(const at::Tensor& rows);

 private:
  Parameter gate_, down_, up_;
};

/// Experts that a router chooses, and one that every token has.
class MixtureOfExperts : public Module {
 public:
  MixtureOfExperts(Module& owner, std::string name, const ExpertOptions& options, const LlamaOptions& dense,
                   int64_t layer);
  /// x [batch, length, width], each position once; what it gives as well.
  at::Tensor forward(const at::Tensor& x);

 private:
  at::Tensor routed(const at::Tensor& x);

  ExpertOptions options_;
  Router router_;
  Experts experts_;
  std::unique_ptr<FeedForward> shared_;
  std::unique_ptr<Parameter> bias_;
};

}  // namespace lockstep::models
