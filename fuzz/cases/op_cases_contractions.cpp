// How products, reductions and look-ups are called.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <rapidcheck.h>

#include "fuzz/cases/op_cases.h"

namespace lockstep::testing {
namespace {

using enum OpCase::Trait;

Sizes join(Sizes leading, const Sizes& last) {
  leading.insert(leading.end(), last.begin(), last.end());
  return leading;
}

Stack draw_mm(Inputs& in) {
  const auto m = in.size(), k = in.size(), n = in.size();
  return {in.tensor({m, k}), in.tensor({k, n})};
}

Stack draw_bmm(Inputs& in) {
  const auto b = in.size(), m = in.size(), k = in.size(), n = in.size();
  return {in.tensor({b, m, k}), in.tensor({b, k, n})};
}

Stack draw_addmm(Inputs& in) {
  const auto m = in.size(), k = in.size(), n = in.size();
  return {in.tensor(in.broadcast({m, n})), in.tensor({m, k}), in.tensor({k, n}), in.factor(2), in.factor(3)};
}

/// Batch dimensions broadcast; either factor may be a vector.
Stack draw_matmul(Inputs& in) {
  const auto batch = in.sizes(0, 2);
  const auto m = in.size(), k = in.size(), n = in.size();
  const bool row = in.number(0, 3) == 3, column = in.number(0, 3) == 3;
  const auto left = row ? Sizes{k} : join(in.broadcast(batch), {m, k});
  const auto right = column ? Sizes{k} : join(in.broadcast(batch), {k, n});
  return {in.tensor(left), in.tensor(right)};
}

Stack draw_linear(Inputs& in) {
  const auto leading = in.sizes(0, 2);
  const auto k = in.size(), n = in.size();
  Stack stack{in.tensor(join(leading, {k})), in.tensor({n, k})};
  if (in.flag()) stack.push_back(in.tensor({n}));
  return stack;
}

Stack draw_weight_gradient(Inputs& in) {
  const auto leading = in.sizes(0, 2);
  return {in.tensor(join(leading, {in.size()})), in.tensor(join(leading, {in.size()}))};
}

/// Codes of finite numbers of both signs.
at::Tensor codes(Inputs& in, const Sizes& sizes) {
  return (in.integers(sizes, 0, 0x7b) + in.integers(sizes, 0, 1) * 0x80).to(at::kByte);
}

Stack draw_float8_linear(Inputs& in) {
  const auto leading = in.sizes(0, 2);
  const auto k = in.size(), n = in.size();
  const auto maxima = in.positive(join(leading, {1}));
  return {codes(in, join(leading, {k})), maxima, codes(in, {n, k}), in.positive({n, 1}), in.number(0, 1), in.flag(),
          maxima.scalar_type()};
}

Stack draw_float8_weight_gradient(Inputs& in) {
  const auto leading = in.sizes(0, 1);
  const auto length = in.size(), n = in.size(), k = in.size();
  return {codes(in, join(leading, {length, n})),
          in.positive(join(leading, {1, n})),
          codes(in, join(leading, {length, k})),
          in.positive(join(leading, {1, k})),
          in.number(0, 1),
          in.flag()};
}

/// Some of the dimensions, from the front or from the back.
Sizes some_dims(const Inputs& in, size_t count) {
  Sizes dims;
  for (size_t d = 0; d < count; ++d)
    if (in.flag()) dims.push_back(static_cast<int64_t>(d) - (in.flag() ? static_cast<int64_t>(count) : 0));
  return dims;
}

Stack draw_sum_over(Inputs& in) {
  const auto sizes = in.sizes(0, 3);
  return {in.tensor(sizes), some_dims(in, sizes.size()), in.flag()};
}

/// No maximum over nothing.
Stack draw_maximum(Inputs& in) {
  auto sizes = in.sizes(0, 3);
  for (auto& size : sizes) size = std::max<int64_t>(size, 1);
  return {in.distinct(sizes), some_dims(in, sizes.size()), in.flag()};
}

/// Means of nothing are NaN: left to a test of their own.
Stack draw_mean(Inputs& in) {
  auto sizes = in.sizes(0, 3);
  for (auto& size : sizes) size = std::max<int64_t>(size, 1);
  return {in.tensor(sizes)};
}

Stack draw_mean_over(Inputs& in) {
  auto stack = draw_mean(in);
  stack.emplace_back(some_dims(in, static_cast<size_t>(stack[0].toTensor().dim())));
  stack.emplace_back(in.flag());
  return stack;
}

Stack draw_embedding(Inputs& in) {
  const auto vocabulary = in.length(7);
  auto table = in.tensor({vocabulary, in.size()});
  return {std::move(table), in.integers(in.sizes(0, 2), 0, vocabulary - 1)};
}

/// A division by how often a token occurs rounds.
Stack draw_embedding_backward(Inputs& in) {
  const auto vocabulary = in.length(7), padding = in.number(-1, vocabulary - 1);
  const auto places = in.sizes(0, 2);
  const bool scale_by_frequency = !in.exact() && in.flag();
  return {in.tensor(join(places, {in.size()})), in.integers(places, 0, vocabulary - 1), vocabulary, padding,
          scale_by_frequency};
}

}  // namespace

std::vector<OpCase> contraction_cases() {
  return {
      {"addmm", kExact | kIntegers | kGradient, draw_addmm},
      {"amax", kExact | kIntegers | kGradient, draw_maximum},
      {"bmm", kExact | kIntegers | kGradient, draw_bmm},
      {"embedding", kExact | kGradient, draw_embedding},
      {"embedding_dense_backward", kExact, draw_embedding_backward},
      {"linear", kExact | kGradient, draw_linear},
      {"matmul", kExact | kIntegers | kGradient, draw_matmul},
      {"mean", kReal | kGradient, draw_mean},
      {"mean.dim", kReal | kGradient, draw_mean_over},
      {"mesh::absolute_maximum", kExact, [](Inputs& in) { return Stack{in.tensor(in.sizes(0, 3))}; }},
      {"mesh::fixed_point_sum", kExact, [](Inputs& in) { return Stack{in.tensor(in.sizes(0, 3))}; }},
      {"mesh::float8_linear", kReal | kWide, draw_float8_linear},
      {"mesh::float8_weight_gradient", kReal | kWide, draw_float8_weight_gradient},
      {"mesh::scaled_squares", kExact,
       [](Inputs& in) {
         return Stack{in.tensor(in.sizes(0, 3)), 4.0};
       }},
      {"mesh::sum_of_squares", kExact, [](Inputs& in) { return Stack{in.tensor(in.sizes(0, 3))}; }},
      {"mesh::weight_gradient", kExact, draw_weight_gradient},
      {"mm", kExact | kIntegers | kGradient, draw_mm},
      {"sum", kExact | kIntegers | kGradient, [](Inputs& in) { return Stack{in.tensor(in.sizes(0, 3))}; }},
      {"sum.dim_IntList", kExact | kIntegers | kGradient, draw_sum_over},
  };
}

}  // namespace lockstep::testing
