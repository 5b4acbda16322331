// Convolutions: the batch may be cut, and, in one group, output channels or the input channels that are summed over.
#include <ATen/Functions.h>

#include <algorithm>

#include "core/error.h"
#include "runtime/planning/rules/built_in_rules.h"
#include "runtime/planning/rules/shardings.h"

namespace lockstep::rules {
namespace {

/// The arguments that both directions have.
struct Geometry {
  explicit Geometry(const Call& call)
      : op(call.op),
        weight(call.sizes_of("weight")),
        transposed(call.argument("transposed").toBool()),
        groups(call.argument("groups").toInt()) {
    const size_t spatial = weight.size() < 2 ? 0 : weight.size() - 2;
    const auto read = [&](const char* name) {
      auto values = call.argument(name).toIntVector();
      if (values.size() == 1) values.assign(spatial, values[0]);
      if (values.size() != spatial)
        fail<BadInput>("{}: {} has {} numbers for {} dimensions", op, name, values.size(), spatial);
      return values;
    };
    stride = read("stride"), padding = read("padding"), dilation = read("dilation");
    output_padding = read("output_padding");
    check();
  }

  /// Elements along the i-th dimension that is slid over.
  int64_t output_size(size_t i, int64_t input) const {
    const int64_t span = dilation[i] * (weight[i + 2] - 1);
    if (transposed) return (input - 1) * stride[i] - 2 * padding[i] + span + output_padding[i] + 1;
    const int64_t room = input + 2 * padding[i] - span - 1;
    return room < 0 ? 0 : room / stride[i] + 1;
  }

  int64_t input_channels() const { return transposed ? weight[0] : weight[1] * groups; }
  int64_t output_channels() const { return transposed ? weight[1] * groups : weight[0]; }

  std::vector<int64_t> output_sizes(const std::vector<int64_t>& input) const {
    if (input.size() != weight.size())
      fail<BadInput>("{}: an input of {} dimensions for a weight of {}", op, input.size(), weight.size());
    if (input[1] != input_channels())
      fail<BadInput>("{}: the input has {} channels, the weight is for {}", op, input[1], input_channels());
    for (size_t d = 1; d < input.size(); ++d)
      if (input[d] == 0) fail<BadInput>("{}: dimension {} of the input has no elements", op, d);
    std::vector<int64_t> sizes{input[0], output_channels()};
    for (size_t i = 0; i + 2 < weight.size(); ++i) {
      sizes.push_back(output_size(i, input[i + 2]));
      if (sizes.back() <= 0)
        fail<BadInput>("{}: the kernel is larger than the padded input in dimension {}", op, i + 2);
    }
    return sizes;
  }

  std::string_view op;
  std::vector<int64_t> weight, stride, padding, dilation, output_padding;
  bool transposed;
  int64_t groups;

 private:
  void check() const {
    if (weight.size() < 3 || weight.size() > 5)
      fail<BadInput>("{}: a weight of {} dimensions, expected 3 to 5", op, weight.size());
    if (groups < 1 || weight[0] < groups || weight[0] % groups != 0)
      fail<BadInput>("{}: {} rows of the weight do not divide into {} groups", op, weight[0], groups);
    for (size_t d = 1; d < weight.size(); ++d)
      if (weight[d] < 1) fail<BadInput>("{}: dimension {} of the weight has no elements", op, d);
    for (size_t i = 0; i < stride.size(); ++i) {
      if (stride[i] < 1 || dilation[i] < 1 || padding[i] < 0 || output_padding[i] < 0)
        fail<BadInput>("{}: stride {}, dilation {}, padding {}, output padding {} in dimension {}", op, stride[i],
                       dilation[i], padding[i], output_padding[i], i + 2);
      if (transposed && output_padding[i] >= stride[i] && output_padding[i] >= dilation[i])
        fail<BadInput>("{}: output padding {} is not below stride {} or dilation {}", op, output_padding[i], stride[i],
                       dilation[i]);
    }
  }
};

void check_dtypes(const Call& call) {
  for (const auto dtype : call.operand_dtypes)
    if (dtype != call.operand_dtypes[0])
      fail<BadInput>("{}: the operands' dtypes differ, {} and {}", call.op, c10::toString(call.operand_dtypes[0]),
                     c10::toString(dtype));
}

std::vector<ResultShape> convolved(const Call& call) {
  const Geometry geometry(call);
  check_dtypes(call);
  if (!call.argument("bias").isNone() && call.argument("bias").toTensor().defined() &&
      call.sizes_of("bias") != std::vector<int64_t>{geometry.output_channels()})
    fail<BadInput>("{}: a bias of sizes {} for {} channels", call.op, c10::str(c10::IntArrayRef(call.sizes_of("bias"))),
                   geometry.output_channels());
  return {{geometry.output_sizes(call.sizes_of("input")), {}, call.dtype_of("input")}};
}

/// Gradients that nobody asked for are made all the same, of zeros.
std::vector<ResultShape> convolved_back(const Call& call) {
  const Geometry geometry(call);
  check_dtypes(call);
  const auto wanted = geometry.output_sizes(call.sizes_of("input"));
  if (call.sizes_of("grad_output") != wanted)
    fail<BadInput>("{}: a gradient of sizes {}, expected {}", call.op,
                   c10::str(c10::IntArrayRef(call.sizes_of("grad_output"))), c10::str(c10::IntArrayRef(wanted)));
  const auto dtype = call.dtype_of("input");
  return {{call.sizes_of("input"), {}, dtype},
          {call.sizes_of("weight"), {}, dtype},
          {{geometry.output_channels()}, {}, dtype}};
}

enum Label { kBatch, kOutput, kInput };

/// Of an activation: its channels, where they are one group.
OpShardingDims activation(size_t count, int channels) {
  OpShardingDims dims(count, OpShardingDim{});
  dims[0] = {kBatch};
  dims[1] = {channels};
  return dims;
}

OpShardingDims weight_dims(const Geometry& geometry, int output, int input) {
  OpShardingDims dims(geometry.weight.size(), OpShardingDim{});
  dims[0] = {geometry.transposed ? input : output};
  dims[1] = {geometry.transposed ? output : input};
  return dims;
}

OpSharding forward(const Call& call) {
  const Geometry geometry(call);
  const bool one = geometry.groups == 1;
  const int output = one ? kOutput : OpShardingDim::kWhole, input = one ? kInput : OpShardingDim::kWhole;
  const auto count = geometry.weight.size();
  OpSharding sharding;
  sharding.operands = {activation(count, input), weight_dims(geometry, output, input)};
  if (call.slots.size() == 3) sharding.operands.push_back({OpShardingDim{output}});
  sharding.results = {activation(count, output)};
  return sharding;
}

/// Input channels stay whole: the gradient of a bias would be the same on every rank, and no part of a sum.
OpSharding backward(const Call& call) {
  const Geometry geometry(call);
  const int output = geometry.groups == 1 ? kOutput : OpShardingDim::kWhole, input = OpShardingDim::kWhole;
  const auto count = geometry.weight.size();
  OpSharding sharding;
  sharding.operands = {activation(count, output), activation(count, input), weight_dims(geometry, output, input)};
  sharding.results = {activation(count, input), weight_dims(geometry, output, input), {OpShardingDim{output}}};
  return sharding;
}

/// A rank without batch rows or input channels has no summands. An unfinished bias may be wider than the rest: it is
/// added apart.
void local_forward(const LocalCall& call, torch::jit::Stack& stack) {
  if (gives_nothing(call, stack)) return;
  const auto input = call.tensor(stack, "input");
  const auto given = call.argument(stack, "bias");
  const auto bias = given.isTensor() ? given.toTensor() : at::Tensor();
  const bool nothing = input.numel() == 0;
  const bool apart = bias.defined() && (nothing || bias.scalar_type() != input.scalar_type());
  if (apart) call.set_argument(stack, "bias", c10::IValue());
  if (nothing)
    stack = {at::zeros(call.plan.results[0]->local_sizes[call.index], input.options())};
  else
    call.op.callBoxed(stack);
  if (!apart) return;
  std::vector<int64_t> shape(static_cast<size_t>(input.dim()), 1);
  shape[1] = bias.numel();
  stack = {stack.back().toTensor().to(bias.scalar_type()).add_(bias.view(shape))};
}

void local_backward(const LocalCall& call, torch::jit::Stack& stack) {
  const auto gradient = call.tensor(stack, "grad_output");
  auto results = torch::jit::Stack(3);
  if (gradient.numel() > 0) {
    const auto channels = call.plan.results[2]->local_sizes[call.index];
    if (!call.argument(stack, "bias_sizes").isNone()) call.set_argument(stack, "bias_sizes", channels);
    call.op.callBoxed(stack);
    results = stack;
  }
  for (size_t r = 0; r < results.size(); ++r)
    if (!results[r].isTensor() || !results[r].toTensor().defined())
      results[r] = at::zeros(call.plan.results[r]->local_sizes[call.index], gradient.options());
  stack = std::move(results);
}

constexpr Rule kRows[] = {
    {"convolution", "convolution", "nc..,oc..,o->no..", "eea", Rule::kPlain, forward, convolved, local_forward},
    {"convolution_backward", "convolution", "no..,nC..,oC..->nC..,oC..,o", "e--", Rule::kPlain, backward,
     convolved_back, local_backward},
};

}  // namespace

std::span<const Rule> convolution() { return kRows; }

}  // namespace lockstep::rules
