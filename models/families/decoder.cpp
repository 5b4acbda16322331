#include "models/families/decoder.h"

#include <ATen/Functions.h>

#include <cmath>

#include "core/error.h"
#include "models/key_value_cache.h"
#include "models/sizes.h"

namespace lockstep::models {
namespace {

using at::Tensor;

Initial head_initial(int64_t width) {
  const double deviation = 1 / std::sqrt(static_cast<double>(width));
  return Initial::drawn(rng::truncated_normal(0, deviation, -3 * deviation, 3 * deviation));
}

RopeTables beside_each_other(const RopeTables& tables, int64_t count) {
  return count == 1 ? tables : RopeTables{tables.cosines.repeat({1, count}), tables.sines.repeat({1, count})};
}

int64_t vocabulary_unit(const LlamaOptions& o) { return o.cut_between_leaves ? leaf_of(o.vocabulary) : 1; }

}  // namespace

Head::Head(Module& owner, std::string name, const LlamaOptions& options, const Embedding& embedding)
    : Module(owner, std::move(name)), norm_(*this, "norm", options.width, options.norm_epsilon), embedding_(embedding) {
  if (!options.tied_head)
    output_ = std::make_unique<Linear>(*this, "output",
                                       Linear::Options{options.width,
                                                       options.vocabulary,
                                                       "vocab embed",
                                                       head_initial(options.width),
                                                       {vocabulary_unit(options), 1}});
  store_as_own(*this);
}

Tensor Head::forward(const Tensor& x) {
  const auto open = scope();
  const auto normed = annotate(norm_.forward(x), "batch length embed");
  if (output_) return output_->unrounded(normed);
  const Tensor table = embedding_.weight();
  return at::linear(widened_for(table, normed), table);
}

std::vector<const Parameter*> Head::shared() const {
  return output_ ? std::vector<const Parameter*>{} : std::vector{&embedding_.weight()};
}

Decoder::Decoder(const LlamaOptions& options, int64_t rotated_size)
    : options_(options),
      tables_(rope_tables({rotated_size, options.rope_theta, options.rope_factor}, options.length)),
      group_tables_(options.query_key_norm ? RopeTables{}
                                           : beside_each_other(tables_, options.heads / options.key_value_heads)),
      embedding_(*this, "tok_embeddings", options.vocabulary, options.width,
                 options.tied_head ? head_initial(options.width) : Initial::drawn(rng::normal(0, 1)),
                 vocabulary_unit(options)),
      head_(*this, "head", options, embedding_) {}

Places Decoder::places(int64_t length) const {
  const int64_t first = first_position();
  const auto rows = [&](const Tensor& table) { return constant(table.narrow(0, first, length)); };
  Places places{rows(tables_.cosines), rows(tables_.sines), current_documents()};
  if (places.documents.are_packed()) {
    const auto& positions = places.documents.positions;
    return {at::embedding(places.cosines, positions), at::embedding(places.sines, positions), places.documents};
  }
  if (group_tables_.cosines.defined())
    places.group_cosines = rows(group_tables_.cosines), places.group_sines = rows(group_tables_.sines);
  return places;
}

std::vector<BlockCall> Decoder::block_calls(at::IntArrayRef tokens) {
  if (const auto length = first_position() + tokens[1]; length > options_.length)
    fail<BadInput>("a sequence of {} tokens is longer than the model's {}", length, options_.length);
  const auto places = this->places(tokens[1]);
  std::vector<BlockCall> calls{
      {[this](const Tensor& input) { return annotate(embedding_.forward(input), "batch norm_length embed"); }}};
  for (auto& layer : layers_)
    calls.push_back({[&block = *layer, places](const Tensor& input) { return block.forward(input, places); }});
  calls.push_back({[this](const Tensor& input) { return head_.forward(input); }, head_.shared()});
  return calls;
}

std::vector<Module*> Decoder::blocks() {
  std::vector<Module*> all{&embedding_};
  for (auto& layer : layers_) all.push_back(layer.get());
  all.push_back(&head_);
  return all;
}

}  // namespace lockstep::models
