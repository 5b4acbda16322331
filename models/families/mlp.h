#pragma once
#include <memory>

#include "models/layers.h"

namespace lockstep::models {

struct MlpOptions {
  int64_t vocabulary = 256, width = 64, hidden = 256, layers = 2;
  double dropout = 0;
};

/// "debugmodel". Throws BadInput naming the choices.
MlpOptions mlp_flavor(const std::string& name);

/// x + down(dropout(gelu(up(x)))), both with bias.
class MlpBlock : public Module {
 public:
  MlpBlock(Module& owner, std::string name, const MlpOptions& options);
  at::Tensor forward(const at::Tensor& x);

 private:
  double dropout_;
  Linear up_, down_;
};

/// Predicts the next token from the present one alone: the smallest model that exercises biases, GELU and dropout.
class Mlp : public Model {
 public:
  explicit Mlp(const MlpOptions& options);
  int64_t vocabulary() const override { return options_.vocabulary; }
  int64_t width() const override { return options_.width; }
  std::string sizes_text() const override;
  double operations_per_token(int64_t length) const override;
  std::vector<Module*> blocks() override;
  std::vector<BlockCall> block_calls(at::IntArrayRef tokens) override;

 private:
  MlpOptions options_;
  Embedding embedding_;
  std::vector<std::unique_ptr<MlpBlock>> layers_;
  std::unique_ptr<Linear> output_;
};

}  // namespace lockstep::models
