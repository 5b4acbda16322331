#pragma once
#include <memory>
#include <string>

#include "models/documents.h"
#include "models/families/llama_options.h"
#include "models/layers.h"

/// What blocks of Llama's kind are made of.
namespace lockstep::models {

/// Where a sequence's tokens stand: rows of the rotations, [length, head_size / 2], or of packed samples
/// [batch, length, head_size / 2].
struct Places {
  at::Tensor cosines, sines;
  Documents documents;
  /// The same beside each other for each query of a group, which are rotated without being taken apart; undefined where
  /// samples are packed, or queries normed.
  at::Tensor group_cosines = {}, group_sines = {};
};

/// x [batch, heads, length, size] rotated to its places.
at::Tensor rotated(const at::Tensor& x, const Places& places);

/// Normal of this deviation, cut at two units, as torchtitan initialises.
Initial truncated(double deviation);
/// Later layers' outputs start smaller, so that the residual stream keeps its size.
double depth_deviation(int64_t layer);

/// One fused weight for query, key and value: rows ordered by head group, each the group's queries, its key, its value.
class Attention : public Module {
 public:
  Attention(Module& owner, std::string name, const LlamaOptions& options, int64_t layer);
  /// x [batch, length, width].
  at::Tensor forward(const at::Tensor& x, const Places& places);

 private:
  at::Tensor placed(const at::Tensor& x, const std::unique_ptr<RmsNorm>& norm, const Places& places) const;
  at::Tensor placed_queries(const at::Tensor& x, const Places& places) const;

  LlamaOptions options_;
  bool rotates_;
  Linear qkv_, out_;
  std::unique_ptr<RmsNorm> query_norm_, key_norm_;
};

/// SwiGLU (Shazeer, 2020) with one fused weight: for each head group, its rows of the gate, then its rows of up.
class FeedForward : public Module {
 public:
  FeedForward(Module& owner, std::string name, const LlamaOptions& options, int64_t layer);
  at::Tensor forward(const at::Tensor& x);

 private:
  int64_t groups_, group_rows_;
  Linear gate_up_, down_;
};

}  // namespace lockstep::models
