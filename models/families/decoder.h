#pragma once
#include <memory>
#include <vector>

#include "models/families/llama_layers.h"
#include "models/rope.h"

namespace lockstep::models {

class DecoderBlock : public Module {
 public:
  using Module::Module;
  virtual at::Tensor forward(const at::Tensor& x, const Places& places) = 0;
};

/// The final norm and the projection to the vocabulary; a tied head uses the embedding's weight.
class Head : public Module {
 public:
  Head(Module& owner, std::string name, const LlamaOptions& options, const Embedding& embedding);
  at::Tensor forward(const at::Tensor& x);
  std::vector<const Parameter*> shared() const;  ///< BlockCall::shared

 private:
  RmsNorm norm_;
  std::unique_ptr<Linear> output_;
  const Embedding& embedding_;
};

/// Blocks of Llama's kind between an embedding and a head.
class Decoder : public Model {
 public:
  int64_t vocabulary() const override { return options_.vocabulary; }
  int64_t width() const override { return options_.width; }
  std::vector<Module*> blocks() override;
  std::vector<BlockCall> block_calls(at::IntArrayRef tokens) override;

 protected:
  /// Without blocks. `rotated_size`: elements of a head that are rotated.
  Decoder(const LlamaOptions& options, int64_t rotated_size);
  void add(std::unique_ptr<DecoderBlock> block) { layers_.push_back(std::move(block)); }
  /// Parameters of the embedding, which no token is multiplied with unless the head uses them.
  int64_t looked_up() const { return options_.tied_head ? 0 : options_.vocabulary * options_.width; }

 private:
  Places places(int64_t length) const;

  LlamaOptions options_;
  RopeTables tables_, group_tables_;
  Embedding embedding_;
  std::vector<std::unique_ptr<DecoderBlock>> layers_;
  Head head_;
};

}  // namespace lockstep::models
