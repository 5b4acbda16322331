// Gradients of ops that move elements: each goes back to where its element came from, in the order of the results.
// Where that was is what the op itself says, of the elements' numbers.
#include <ATen/Functions.h>

#include "runtime/kernels/tensors/ordered_scatter.h"
#include "runtime/planning/plan.h"
#include "runtime/planning/rules/canonical/canonical_forms.h"

namespace lockstep::rules {
namespace {

using at::Tensor;
using Move = Tensor (*)(const LocalCall&, const torch::jit::Stack&, const Tensor&);

const Tensor& gradient_of(const torch::jit::Stack& stack) { return stack[0].toTensor(); }

void send_back(const LocalCall& call, torch::jit::Stack& stack, Move move) {
  const auto gradient = gradient_of(stack);
  const auto& sizes = call.plan.results[0]->local_sizes[call.index];
  const auto zeros = at::zeros(sizes, gradient.options());
  if (gradient.numel() == 0) return void(stack = {zeros});
  // Exact in doubles: nothing here has 2^53 elements.
  const auto numbers = at::arange(zeros.numel(), c10::kDouble).reshape(sizes);
  const auto from = move(call, stack, numbers).reshape({-1}).to(c10::kLong);
  const auto sums =
      kernels::ordered_scatter(zeros.reshape({-1}), 0, from, gradient.reshape({-1}), kernels::Write::kAdd);
  stack = {sums.reshape(sizes)};
}

using Pad = Tensor (*)(const Tensor&, at::IntArrayRef);
template <Pad kPad>
void local_pad(const LocalCall& call, torch::jit::Stack& stack) {
  send_back(call, stack, [](const LocalCall& c, const torch::jit::Stack& s, const Tensor& numbers) {
    return kPad(numbers, c.argument(s, "padding").toIntVector());
  });
}

/// Scales are those of the call: a size alone does not say them.
std::optional<double> scale(const LocalCall& call, const torch::jit::Stack& stack, const char* name) {
  return call.argument(stack, name).toOptional<double>();
}

std::vector<int64_t> output_size(const LocalCall& call, const torch::jit::Stack& stack) {
  return call.argument(stack, "output_size").toIntVector();
}

using Repeat1d = Tensor (*)(const Tensor&, at::IntArrayRef, std::optional<double>);
template <Repeat1d kRepeat>
void local_repeat1d(const LocalCall& call, torch::jit::Stack& stack) {
  send_back(call, stack, [](const LocalCall& c, const torch::jit::Stack& s, const Tensor& numbers) {
    return kRepeat(numbers, output_size(c, s), scale(c, s, "scales"));
  });
}

using Repeat2d = Tensor (*)(const Tensor&, at::IntArrayRef, std::optional<double>, std::optional<double>);
template <Repeat2d kRepeat>
void local_repeat2d(const LocalCall& call, torch::jit::Stack& stack) {
  send_back(call, stack, [](const LocalCall& c, const torch::jit::Stack& s, const Tensor& numbers) {
    return kRepeat(numbers, output_size(c, s), scale(c, s, "scales_h"), scale(c, s, "scales_w"));
  });
}

using Repeat3d = Tensor (*)(const Tensor&, at::IntArrayRef, std::optional<double>, std::optional<double>,
                            std::optional<double>);
template <Repeat3d kRepeat>
void local_repeat3d(const LocalCall& call, torch::jit::Stack& stack) {
  send_back(call, stack, [](const LocalCall& c, const torch::jit::Stack& s, const Tensor& numbers) {
    return kRepeat(numbers, output_size(c, s), scale(c, s, "scales_d"), scale(c, s, "scales_h"),
                   scale(c, s, "scales_w"));
  });
}

void local_unfold(const LocalCall& call, torch::jit::Stack& stack) {
  send_back(call, stack, [](const LocalCall& c, const torch::jit::Stack& s, const Tensor& numbers) {
    return numbers.unfold(c.argument(s, "dim").toInt(), c.argument(s, "size").toInt(), c.argument(s, "step").toInt());
  });
}

/// A gradient goes to the element that was the largest of each window, windows in their order.
template <int kDims>
void local_max_pool(const LocalCall& call, torch::jit::Stack& stack) {
  const auto self = call.tensor(stack, "self"), gradient = gradient_of(stack);
  const auto zeros = at::zeros(self.sizes(), gradient.options());
  if (gradient.numel() == 0) return void(stack = {zeros});
  const auto sums = kernels::ordered_scatter(zeros.flatten(-kDims), -1, call.tensor(stack, "indices").flatten(-kDims),
                                             gradient.flatten(-kDims), kernels::Write::kAdd);
  stack = {sums.reshape(self.sizes())};
}

constexpr CanonicalRule kForms[] = {
    {"_upsample_nearest_exact1d_backward", local_repeat1d<at::_upsample_nearest_exact1d>},
    {"_upsample_nearest_exact2d_backward", local_repeat2d<at::_upsample_nearest_exact2d>},
    {"_upsample_nearest_exact3d_backward", local_repeat3d<at::_upsample_nearest_exact3d>},
    {"adaptive_max_pool2d_backward", local_max_pool<2>},
    {"adaptive_max_pool3d_backward", local_max_pool<3>},
    {"max_pool2d_with_indices_backward", local_max_pool<2>},
    {"reflection_pad1d_backward", local_pad<at::reflection_pad1d>},
    {"reflection_pad2d_backward", local_pad<at::reflection_pad2d>},
    {"reflection_pad3d_backward", local_pad<at::reflection_pad3d>},
    {"replication_pad1d_backward", local_pad<at::replication_pad1d>},
    {"replication_pad2d_backward", local_pad<at::replication_pad2d>},
    {"replication_pad3d_backward", local_pad<at::replication_pad3d>},
    {"unfold_backward", local_unfold},
    {"upsample_nearest1d_backward", local_repeat1d<at::upsample_nearest1d>},
    {"upsample_nearest2d_backward", local_repeat2d<at::upsample_nearest2d>},
    {"upsample_nearest3d_backward", local_repeat3d<at::upsample_nearest3d>},
};

}  // namespace

std::span<const CanonicalRule> canonical_moves_back() { return kForms; }

}  // namespace lockstep::rules
