#pragma once
#include <string>
#include <vector>

#include "trainer/job/job.h"

/// Which tensors Hugging Face's transformers keeps for a model, and how they are made of ours: data, one row a tensor.
namespace lockstep::trainer {

struct ForeignTensor {
  std::string name;                ///< "model.layers.0.self_attn.q_proj.weight"
  std::vector<std::string> parts;  ///< ours, whose rows it has one behind the other
  /// Not 0: the rows of each head of this size are the first elements of all rotary pairs, then the second ones; ours
  /// have the two of a pair side by side.
  int64_t rotary_head_size = 0;
  bool transposed = false;  ///< its columns are our rows
  int64_t expert = -1;      ///< not below 0: ours has all experts' matrices, [expert, ...], and it has this one
  bool in_float32 = false;  ///< whatever the others are in
};

/// Of a model with all its sizes, in the order of its layers.
std::vector<ForeignTensor> hugging_face_tensors(const ModelSection& model);

/// Whether files have it though it holds nothing that is trained: masks, frequencies; or, of DeepSeek-V3's, a module
/// that predicts a second token, which stands behind the layers.
bool holds_no_weight(const ModelSection& model, const std::string& foreign_name);

}  // namespace lockstep::trainer
