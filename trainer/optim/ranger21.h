#pragma once
#include <memory>

#include "trainer/optim/optimizer.h"

namespace lockstep::trainer {

/// Ranger21 (Wright and Demeure, "Ranger21: a synergistic deep learning optimizer", 2021, arXiv 2106.13731): AdamW with
/// components that [ranger21] switches. Each operation is rounded, in this order; b0 = 0.9, t counts steps from 1:
///   g           clipped by units, centralised, normalised (gradient_transforms.h)
///   m, v        positive-negative momentum (Xie et al., 2021): m_t = b1^2 m_(t-2) + (1 - b1^2) g,
///               n = ((1 + b0) m_t - b0 m_(t-1)) / (sqrt((1 + b0)^2 + b0^2) (1 - b1^t)); V = the largest v so far;
///               without it n = m_t / (1 - b1^t), m_t = b1 m_(t-1) + (1 - b1) g, V = v_t;
///               v_t = b2 v_(t-1) + (1 - b2) g^2
///   u           n / s(sqrt(V / (1 - b2^t)) + eps); softplus: s(x) = log(1 + exp(50 x)) / 50, otherwise s(x) = x
///   d           decay p; stable weight decay (Xie et al., 2020) divides it by eps + the root of the mean of
///               V / (1 - b2^t) over all elements of all trainable parameters; norm loss (Georgiou et al., 2021)
///               multiplies each unit of it by 1 - 1 / (its norm + eps)
///   p           p - r u - r d
///   lookahead   (Zhang et al., 2019) every 5 steps: slow = 0.5 slow + 0.5 p, p = slow
/// The learning rate's components are LearningRateSchedule's.
std::unique_ptr<Optimizer> make_ranger21(const Job& job);

}  // namespace lockstep::trainer
