// Losses: an element of each place, then perhaps their sum or mean over all places, which leaves a Partial.
#include <ATen/ExpandUtils.h>
#include <ATen/Functions.h>

#include <algorithm>

#include "core/error.h"
#include "runtime/planning/rules/built_in_rules.h"
#include "runtime/planning/rules/shardings.h"

namespace lockstep::rules {
namespace {

enum Reduce : int64_t { kNone = 0, kMean = 1, kSum = 2 };  // LibTorch's numbers

/// How many places there are, on all ranks together.
double place_count(const LocalCall& call) {
  std::vector<int64_t> sizes;
  for (const auto* spec : call.plan.wanted)
    if (spec) sizes = at::infer_size(sizes, spec->sizes);
  return static_cast<double>(c10::multiply_integers(sizes));
}

OpSharding by_place(const Call& call) {
  if (call.argument("reduction").toInt() == kNone)
    return parse_op_sharding("...->...", call.operand_sizes, call.result_sizes());
  // Whoever has an element has it of all operands: none may be broadcast.
  for (const auto& sizes : call.operand_sizes)
    if (sizes != call.operand_sizes[0]) return all_whole(call);
  return parse_op_sharding("...,...,...->", call.operand_sizes, call.result_sizes());
}

/// A mean, and its gradient, is that of the sum, divided by the number of places on all ranks.
void local_loss(const LocalCall& call, torch::jit::Stack& stack) {
  const bool mean = call.argument(stack, "reduction").toInt() == kMean;
  if (mean) call.set_argument(stack, "reduction", int64_t{kSum});
  call.op.callBoxed(stack);
  if (mean) stack = {stack.back().toTensor().div(place_count(call))};
}

std::vector<ResultShape> loss_shapes(const Call& call) {
  auto shapes = pointwise_shapes(call);
  if (call.argument("reduction").toInt() != kNone)
    for (auto& shape : shapes) shape = {{}, {}, shape.dtype};
  return shapes;
}

/// LibTorch's kernel takes operands of one size.
OpSharding gradient_of_equal(const Call& call) {
  const auto& self = call.sizes_of("self");
  if (call.sizes_of("target") != self)
    fail<BadInput>("{}: a target of sizes {} for an input of sizes {}", call.op,
                   c10::str(c10::IntArrayRef(call.sizes_of("target"))), c10::str(c10::IntArrayRef(self)));
  if (!at::is_expandable_to(call.sizes_of("grad_output"), self))
    fail<BadInput>("{}: a gradient of sizes {} for an input of sizes {}", call.op,
                   c10::str(c10::IntArrayRef(call.sizes_of("grad_output"))), c10::str(c10::IntArrayRef(self)));
  return parse_op_sharding("...->...", call.operand_sizes, call.result_sizes());
}

std::vector<int64_t> squeezed(std::vector<int64_t> sizes) {
  std::erase(sizes, 1);
  return sizes;
}

/// LibTorch broadcasts the gradient to the input without either's dimensions of one element: whoever has a part would
/// leave out others.
OpSharding gradient_of_squeezed(const Call& call) {
  auto sharding = gradient_of_equal(call);
  const auto &gradient = call.sizes_of("grad_output"), &self = call.sizes_of("self");
  if (gradient.empty() || gradient == self) return sharding;
  if (!at::is_expandable_to(squeezed(gradient), squeezed(self)))
    fail<BadInput>("{}: a gradient of sizes {} for an input of sizes {}", call.op, c10::str(c10::IntArrayRef(gradient)),
                   c10::str(c10::IntArrayRef(self)));
  return all_whole(call);
}

OpSharding by_equal_place(const Call& call) {
  if (call.sizes_of("target") != call.sizes_of("self"))
    fail<BadInput>("{}: a target of sizes {} for an input of sizes {}", call.op,
                   c10::str(c10::IntArrayRef(call.sizes_of("target"))),
                   c10::str(c10::IntArrayRef(call.sizes_of("self"))));
  return by_place(call);
}

/// Classes are whole. The batch may be cut where nobody divides by the weights of all of it.
OpSharding by_sample(const Call& call) {
  auto sharding = all_whole(call);
  const bool forward = has_argument(call.schema, "total_weight") == false;
  const bool batched = call.sizes_of("self").size() == 2;
  const auto reduction = call.argument("reduction").toInt();
  if (!batched || (forward && reduction == kMean)) return sharding;
  const auto size = call.sizes_of("self")[0];
  for (const char* name : {"grad_output", "self", "target"})
    if (has_argument(call.schema, name) && !call.sizes_of(name).empty() && call.sizes_of(name)[0] == size)
      sharding.operands[call.operand(name)][0] = {0};
  if (!call.results[0].sizes.empty()) sharding.results[0][0] = {0};
  sharding.can_reduce = true;
  return sharding;
}

constexpr Rule gradient_row(const char* op, OpSharding (*sharding)(const Call&) = gradient_of_equal) {
  return {op, "loss", "...->...", "-", Rule::kPlain, sharding, pointwise_shapes, local_loss};
}

constexpr Rule kRows[] = {
    {"binary_cross_entropy", "loss", "...->... or a sum", "-", Rule::kPlain, by_equal_place, loss_shapes, local_loss},
    gradient_row("binary_cross_entropy_backward", gradient_of_squeezed),
    {"huber_loss", "loss", "...->... or a sum", "-", Rule::kPlain, by_place, loss_shapes, local_loss},
    gradient_row("huber_loss_backward"),
    {"mse_loss", "loss", "...->... or a sum", "-", Rule::kPlain, by_place, nullptr, local_loss},
    gradient_row("mse_loss_backward"),
    {"smooth_l1_loss", "loss", "...->... or a sum", "-", Rule::kPlain, by_place, nullptr, local_loss},
    {"nll_loss_backward", "loss", "n,nC,n->nC", "-", Rule::kPlain, by_sample},
    {"nll_loss_forward", "loss", "nC,n->n, or whole for a mean", "-", Rule::kPlain, by_sample},
    gradient_row("smooth_l1_loss_backward"),
};

}  // namespace

std::span<const Rule> losses() { return kRows; }

}  // namespace lockstep::rules
