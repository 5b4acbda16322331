// How softmax, norms, random ops and the optimizer are called, and what models call above them.
#include <ATen/Functions.h>
#include <rapidcheck.h>

#include "fuzz/cases/op_cases.h"
#include "runtime/own_ops/mesh_ops.h"

namespace lockstep::testing {
namespace {

using enum OpCase::Trait;

Sizes with_last(Sizes leading, int64_t last) {
  leading.push_back(last);
  return leading;
}

Stack draw_softmax(Inputs& in) {
  const auto sizes = in.sizes(0, 3);
  return {in.tensor(sizes), in.dimension(sizes.size()), false};
}

/// A softmax, then its gradient's arguments.
template <bool kLogarithm>
Stack draw_softmax_backward(Inputs& in) {
  const auto sizes = in.sizes(0, 3);
  const auto dim = in.dimension(sizes.size());
  auto output =
      kLogarithm ? at::_log_softmax(in.tensor(sizes), dim, false) : at::_softmax(in.tensor(sizes), dim, false);
  return {in.tensor(sizes), output, dim, static_cast<int64_t>(in.dtype())};
}

Stack draw_cross_entropy_backward(Inputs& in) {
  const auto places = in.sizes(0, 2);
  const auto classes = in.length(7);
  return {in.tensor(places), in.tensor(with_last(places, classes)), in.positive(places),
          in.integers(places, -1, classes - 1)};
}

Stack draw_exponential_sum(Inputs& in) {
  const auto places = in.sizes(0, 2);
  return {in.tensor(with_last(places, in.length(7))), in.tensor(places)};
}

Stack draw_pick_class(Inputs& in) {
  const auto places = in.sizes(0, 2);
  const auto classes = in.length(7);
  return {in.tensor(with_last(places, classes)), in.integers(places, -1, classes - 1)};
}

Stack draw_rms_norm(Inputs& in) {
  const auto width = in.length(6);
  return {in.tensor(with_last(in.sizes(0, 2), width)), in.tensor({width}), 1e-5};
}

Stack draw_rms_norm_weight_gradient(Inputs& in) {
  const auto places = in.sizes(1, 3);
  const auto x = in.tensor(with_last(places, in.length(6)));
  return {in.tensor(x.sizes().vec()), x, in.positive(places)};
}

Stack draw_rms_norm_backward(Inputs& in) {
  const auto width = in.length(6);
  const auto places = in.sizes(0, 2);
  auto reciprocal = in.positive(places);
  if (in.dtype() == c10::kBFloat16) reciprocal = reciprocal.to(c10::kFloat);
  return {in.tensor(with_last(places, width)), in.tensor(with_last(places, width)), reciprocal, in.tensor({width})};
}

Stack draw_swiglu(Inputs& in) {
  auto sizes = in.sizes(0, 2);
  sizes.push_back(2);
  sizes.push_back(in.length(6));
  return {in.tensor(sizes)};
}

Stack draw_swiglu_backward(Inputs& in) {
  const auto places = in.sizes(0, 2);
  const auto width = in.length(6);
  return {in.tensor(with_last(places, width)), in.tensor(with_last(with_last(places, 2), width))};
}

Stack draw_rotation(Inputs& in) {
  const auto length = in.length(6), pairs = in.number(1, 3);
  return {in.tensor({in.number(1, 3), in.number(1, 4), length, 2 * pairs}), in.tensor({length, pairs}),
          in.tensor({length, pairs}), in.flag()};
}

/// Of the whole tensor, or of each row.
Stack draw_quantize(Inputs& in) {
  const auto sizes = in.sizes(1, 3);
  auto x = in.tensor(sizes);
  const bool by_row = in.flag();
  auto maxima = x.numel() > 0 ? (by_row ? x.abs().amax(-1, true) : x.abs().amax()) : at::ones({}, x.options());
  return {x, maxima, in.number(0, 3), in.flag()};
}

Stack draw_float8_codes(Inputs& in) {
  auto stack = draw_quantize(in);
  stack[2] = in.number(0, 1);
  return stack;
}

/// Any byte is a code; those of infinities and NaN are left out, which no quantised number has.
Stack draw_float8_numbers(Inputs& in) {
  const auto sizes = in.sizes(1, 3);
  return {in.integers(sizes, 0, 0x7b).to(c10::kByte), in.positive({}), in.number(0, 1), in.flag()};
}

Stack draw_quantize_blocks(Inputs& in) {
  const auto sizes = in.sizes(1, 3);
  return {in.tensor(sizes), in.dimension(sizes.size()), in.number(0, 2)};
}

Stack draw_hadamard(Inputs& in) { return {in.tensor(with_last(in.sizes(0, 2), int64_t{1} << in.number(1, 6))), 0.5}; }

Stack draw_dropout(Inputs& in) { return {in.tensor(in.sizes(0, 3)), 0.5, true}; }

Stack draw_dropout_backward(Inputs& in) {
  const auto sizes = in.sizes(0, 3);
  return {in.tensor(sizes), in.mask(sizes), 2.0};
}

Stack draw_adamw(Inputs& in) {
  const auto sizes = in.sizes(0, 3);
  return {in.tensor(sizes),
          in.tensor(sizes),
          in.tensor(sizes),
          in.positive(sizes),
          0.1,
          0.9,
          0.95,
          1e-8,
          0.1,
          0.19,
          0.0975,
          0.5};
}

Stack draw_at_rms_norm(Inputs& in) {
  auto stack = draw_rms_norm(in);
  return {stack[0], stack[1].toTensor().sizes().vec(), stack[1], stack[2]};
}

/// Rows of few elements lie all around their mean: what is left of their gradients is rounding.
Stack draw_layer_norm(Inputs& in) {
  const auto width = in.length(4) + 4;
  return {in.tensor(with_last(in.sizes(0, 2), width)), Sizes{width}, in.tensor({width}), in.tensor({width}), 1e-5};
}

/// At least one target counts: a mean over none is NaN on one device as well.
Stack draw_cross_entropy(Inputs& in) {
  const auto tokens = in.length(6), classes = in.length(7);
  const auto ignored = classes == 1 ? -100 : *rc::gen::element<int64_t>(-100, -1, 0);
  auto target = in.integers({tokens}, 0, classes - 1).masked_fill_(in.mask({tokens}), ignored);
  target[0] = classes - 1;
  return {in.tensor({tokens, classes}), target, c10::IValue(), in.number(0, 2), ignored};
}

}  // namespace

std::vector<OpCase> row_cases() {
  return {
      {"_log_softmax", kReal | kGradient, draw_softmax},
      {"_log_softmax_backward_data", kReal | kGradient, draw_softmax_backward<true>},
      {"_softmax", kReal | kGradient, draw_softmax},
      {"_softmax_backward_data", kReal | kGradient, draw_softmax_backward<false>},
      {"mesh::adamw", kReal | kWide | kDense, draw_adamw},
      {"mesh::cross_entropy_backward", kReal, draw_cross_entropy_backward},
      {"mesh::exponential_sum", kReal, draw_exponential_sum},
      {"mesh::float8_codes", kReal, draw_float8_codes},
      {"mesh::float8_numbers", kReal | kWide, draw_float8_numbers},
      {"mesh::hadamard_transform", kReal | kGradient, draw_hadamard},
      {"mesh::pick_class", kExact, draw_pick_class},
      {"mesh::quantize", kReal, draw_quantize},
      {"mesh::quantize_blocks", kReal, draw_quantize_blocks},
      {"mesh::rms_norm", kReal, draw_rms_norm},
      {"mesh::rms_norm_backward", kReal, draw_rms_norm_backward},
      {"mesh::rms_norm_input_gradient", kReal, draw_rms_norm_backward},
      {"mesh::rms_norm_weight_gradient", kReal, draw_rms_norm_weight_gradient},
      {"mesh::rotate_pairs", kExact | kGradient, draw_rotation},
      {"mesh::swiglu", kReal | kGradient, draw_swiglu},
      {"mesh::swiglu_backward", kReal, draw_swiglu_backward},
      {"native_dropout", kExact | kOwnPeer, draw_dropout},
      {"native_dropout_backward", kExact | kGradient, draw_dropout_backward},
      {"normal", kExact | kOwnPeer,
       [](Inputs& in) {
         return Stack{in.tensor(in.sizes(0, 3)), 1.0, 2.0};
       },
       "normal_"},
      {"uniform", kExact | kOwnPeer,
       [](Inputs& in) {
         return Stack{in.tensor(in.sizes(0, 3)), -1.0, 2.0};
       }},
  };
}

std::vector<OpCase> composite_cases() {
  return {
      {"cross_entropy_loss", kReal | kGradient, draw_cross_entropy},
      {"dropout", kReal | kGradient | kOwnPeer, draw_dropout},
      {"layer_norm", kReal | kGradient, draw_layer_norm},
      {"rms_norm", kReal | kGradient, draw_at_rms_norm},
      composite_attention(),
  };
}

}  // namespace lockstep::testing
