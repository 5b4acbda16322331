#pragma once
#include <ATen/core/Tensor.h>

#include <array>
#include <vector>

#include "runtime/own_ops/mesh_ops.h"
#include "trainer/attention/query_rows.h"

namespace lockstep::trainer {

/// What attention of a cut sequence is told besides query, key and value.
struct AttentionOptions {
  /// [b, l], int64, of packed documents: as of mesh_ops::document_attention(); undefined: a sequence is one. (Ranks
  /// have as many rows then; how many keys these see is the documents' business.)
  at::Tensor places = {};
  double dropout = 0;  ///< the share of weights that is dropped
};

/// What query rows bring along. Undefined `draws`: nothing is dropped; `places`, too: a sequence is one document.
struct RowInputs {
  at::Tensor places = {};  ///< [b, 1, rows]
  at::Tensor draws = {};   ///< [b, h*g, rows, 3]: mesh_ops::attention_draws()
  double dropout = 0;

  mesh_ops::Dropout drops() const { return draws.defined() ? mesh_ops::Dropout{draws, dropout} : mesh_ops::Dropout(); }
};

/// Of all rows of a query that attends to as many keys, cut as it is. Draws, if anything is dropped.
RowInputs row_inputs(const at::Tensor& query, const AttentionOptions& options);

/// The same where rows are computed with.
class RowInputsOfHalves {
 public:
  RowInputsOfHalves(const QueryRows& rows, const RowInputs& whole);
  /// What keep() has appended, from `next` on, which is left behind it.
  RowInputsOfHalves(const QueryRows& rows, bool has_places, double dropout, const at::Tensor*& next);

  bool has_places() const { return has_places_; }
  double dropout() const { return dropout_; }
  RowInputs of(int64_t part, size_t half) const;
  void keep(const QueryRows& rows, std::vector<at::Tensor>& kept) const;

 private:
  bool has_places_;
  double dropout_;
  QueryRows::Halves places_, draws_;
};

}  // namespace lockstep::trainer
