#include "trainer/attention/row_inputs.h"

#include "runtime/redistribution/redistribute.h"
#include "runtime/tensor/sharded_tensor.h"

namespace lockstep::trainer {

using at::Tensor;

RowInputs row_inputs(const Tensor& query, const AttentionOptions& options) {
  if (!mesh_ops::drops_weights(options.dropout)) return {beside_query(options.places, query)};
  const auto draws = mesh_ops::attention_draws(query, query.size(2));
  const auto places = options.places.defined() ? options.places : mesh_ops::places_of_one_document(query);
  return {beside_query(places, query), redistribute_values(draws, layout_of(query), "redistribute"), options.dropout};
}

RowInputsOfHalves::RowInputsOfHalves(const QueryRows& rows, const RowInputs& whole)
    : has_places_(whole.places.defined()), dropout_(whole.dropout) {
  if (has_places_) places_ = rows.spread(whole.places, kPlaces);
  if (dropout_ > 0) draws_ = rows.spread(whole.draws, kDraws);
}

RowInputsOfHalves::RowInputsOfHalves(const QueryRows& rows, bool has_places, double dropout, const Tensor*& next)
    : has_places_(has_places), dropout_(dropout) {
  if (has_places_) places_ = rows.restored({}, next);
  if (dropout_ > 0) draws_ = rows.restored({}, next);
}

RowInputs RowInputsOfHalves::of(int64_t part, size_t half) const {
  const auto at = static_cast<size_t>(part);
  return {has_places_ ? places_[at][half] : Tensor(), dropout_ > 0 ? draws_[at][half] : Tensor(), dropout_};
}

void RowInputsOfHalves::keep(const QueryRows& rows, std::vector<Tensor>& kept) const {
  if (has_places_) rows.keep(places_, true, kept);
  if (dropout_ > 0) rows.keep(draws_, true, kept);
}

}  // namespace lockstep::trainer
