#pragma once
#include <optional>
#include <string>

#include "models/families/moe_options.h"
#include "models/layers.h"

namespace lockstep::models {

/// Which experts each token goes to, best first, and with which weight.
struct Routing {
  at::Tensor experts;  ///< int64 [batch, length, per_token]; -1: the expert had no room
  at::Tensor weights;  ///< float32, of the same sizes
};

/// Token choice (Shazeer et al., 2017): a linear map scores the experts, the best are taken; of equal scores those of
/// lower numbers. Scores are float32. Where jobs balance by biases, these are added to scores for the choice alone
/// (Wang et al., "Auxiliary-loss-free load balancing", 2024).
class Router : public Module {
 public:
  Router(Module& owner, std::string name, const ExpertOptions& options, int64_t width, int64_t layer);
  /// x [batch, length, width]. `bias`: one for each expert, null: none. Tells the hooks how many tokens chose what, and
  /// what there is to lose besides.
  Routing forward(const at::Tensor& x, const Parameter* bias);

 private:
  at::Tensor scores(const at::Tensor& x);
  at::Tensor chosen(const at::Tensor& scores) const;
  at::Tensor within_groups(const at::Tensor& scores) const;
  at::Tensor weights(const at::Tensor& scores, const at::Tensor& experts) const;
  at::Tensor within_capacity(const at::Tensor& experts) const;

  ExpertOptions options_;
  Linear gate_;
  at::Tensor numbers_;  ///< of experts, from 0
};

// What follows takes the experts' numbers, [count], int64, from 0 on, where the tokens are.

/// How many choices are each expert, [count]. `experts` [batch, length, per_token].
at::Tensor choice_counts(const at::Tensor& experts, const at::Tensor& numbers);

/// `experts` but for those that have no room, which become -1: an expert takes the first `capacity` tokens of a
/// sequence that chose it, first all first choices, then all second ones (Lepikhin et al., "GShard", 2020, algorithm
/// 1). Sequences are whole.
at::Tensor within_capacity(const at::Tensor& experts, const at::Tensor& numbers, int64_t capacity);

/// Of each sequence, [batch], how unevenly it falls on experts: the sum over them of count / per_token times the share
/// of tokens that chose it, times its mean share of a token's scores; 1 where either is even (DeepSeek-V3, 2024, eq. 17
/// to 20). Differentiable in scores [batch, length, count].
at::Tensor imbalance(const at::Tensor& scores, const at::Tensor& experts, const at::Tensor& numbers);

}  // namespace lockstep::models
