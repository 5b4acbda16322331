#include "models/families/mlp.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include "core/error.h"

namespace lockstep::models {
namespace {

using at::Tensor;

Initial small() { return Initial::drawn(rng::normal(0, 0.05)); }

}  // namespace

MlpOptions mlp_flavor(const std::string& name) {
  if (name == "debugmodel") return {};
  fail<BadInput>("model.flavor {} is not known for mlp; choose debugmodel", name);
}

MlpBlock::MlpBlock(Module& owner, std::string name, const MlpOptions& o)
    : Module(owner, std::move(name)),
      dropout_(o.dropout),
      up_(*this, "up", {o.width, o.hidden, "ffn embed", small(), {}, true}),
      down_(*this, "down", {o.hidden, o.width, "embed ffn", small(), {}, true}) {}

Tensor MlpBlock::forward(const Tensor& x) {
  const auto open = scope();
  const auto hidden = dropped(at::gelu(up_.forward(annotate(x, "batch length embed"))), dropout_);
  return x + annotate(down_.forward(hidden), "batch norm_length embed");
}

Mlp::Mlp(const MlpOptions& options)
    : options_(options), embedding_(*this, "tok_embeddings", options.vocabulary, options.width, small()) {
  for (int64_t layer = 0; layer < options.layers; ++layer)
    layers_.push_back(std::make_unique<MlpBlock>(*this, fmt::format("layers.{}", layer), options));
  output_ = std::make_unique<Linear>(
      *this, "output", Linear::Options{options.width, options.vocabulary, "vocab embed", small(), {}, true});
}

std::vector<BlockCall> Mlp::block_calls(at::IntArrayRef /*tokens*/) {
  std::vector<BlockCall> calls{
      {[this](const Tensor& input) { return annotate(embedding_.forward(input), "batch norm_length embed"); }}};
  for (auto& layer : layers_)
    calls.push_back({[&block = *layer](const Tensor& input) { return block.forward(input); }});
  calls.push_back({[this](const Tensor& input) { return output_->unrounded(annotate(input, "batch length embed")); }});
  return calls;
}

std::string Mlp::sizes_text() const {
  return fmt::format("width {}, layers {}, hidden {}, vocabulary {}, dropout {}", options_.width, options_.layers,
                     options_.hidden, options_.vocabulary, options_.dropout);
}

double Mlp::operations_per_token(int64_t /*length*/) const {
  return 6 * static_cast<double>(parameter_count() - options_.vocabulary * options_.width);
}

std::vector<Module*> Mlp::blocks() {
  std::vector<Module*> all{&embedding_};
  for (auto& layer : layers_) all.push_back(layer.get());
  all.push_back(output_.get());
  return all;
}

}  // namespace lockstep::models
