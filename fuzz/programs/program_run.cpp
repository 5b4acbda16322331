#include "fuzz/programs/program_run.h"

#include <ATen/ExpandUtils.h>
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include "core/error.h"
#include "runtime/context/scopes.h"
#include "runtime/redistribution/redistribute.h"
#include "runtime/tensor/sharded_tensor.h"
#include "trainer/sharding/activation_checkpoint.h"

namespace lockstep::fuzz {

namespace {

/// Where only sizes are asked for nothing is dropped.
at::Tensor dropped(const at::Tensor& x) { return is_sharded(x) ? at::dropout(x, 0.5, true) : x * 1; }

}  // namespace

/// The view and what lies behind it are values from now on, as they are after the write.
void ProgramRun::write(const Instruction& instruction) {
  const auto& a = values_[instruction.a];
  auto whole = mesh_ ? redistribute(a, Layout::parse(*mesh_, instruction.layout)) : a * 1;
  auto view = whole.transpose(0, instruction.dim).select(0, instruction.index);
  view.mul_(0.5);
  if (const auto& b = values_[instruction.b]; at::is_expandable_to(b.sizes(), view.sizes())) view.add_(b);
  values_.push_back(whole);
  values_.push_back(view);
}

at::Tensor ProgramRun::result_of(const Instruction& instruction) const {
  const auto &a = values_[instruction.a], &b = values_[instruction.b];
  const auto dim = instruction.dim, index = instruction.index;
  switch (instruction.step) {
    case Step::kAdd:
      return a + b;
    case Step::kSubtract:
      return a - b;
    case Step::kMultiply:
      return a * b;
    case Step::kMatmul:
      return at::matmul(a, b);
    case Step::kTanh:
      return at::tanh(a);
    case Step::kSine:
      return at::sin(a);
    case Step::kSigmoid:
      return at::sigmoid(a);
    case Step::kSoftmax:
      return at::softmax(a, dim);
    case Step::kSum:
      return at::sum(a, dim, /*keepdim=*/true);
    case Step::kMean:
      return at::mean(a);
    case Step::kTranspose:
      return a.transpose(0, dim);
    case Step::kSelect:
      return a.select(dim, index);
    case Step::kNarrow:
      return a.narrow(dim, index, a.size(dim) - index);
    case Step::kUnsqueeze:
      return a.unsqueeze(dim);
    case Step::kFlatten:
      return a.reshape({-1});
    case Step::kExpand: {
      auto sizes = a.sizes().vec();
      sizes.insert(sizes.begin(), 2);
      return a.expand(sizes);
    }
    case Step::kJoin:
      return at::cat({a, b, a}, dim);
    case Step::kDropout:
      return dropped(a);
    case Step::kCheckpoint: {
      const auto scale = values_[0];  // a parameter: what is run again has a graph of its own
      return trainer::checkpointed([=](const at::Tensor& x) { return dropped(at::tanh(x * scale)) * x; }, a);
    }
    case Step::kRedistribute:
      return mesh_ ? redistribute(a, Layout::parse(*mesh_, instruction.layout)) : a * 1;
    case Step::kRelu:
      return at::relu(a);
    case Step::kMaximum:
      return at::maximum(a, b);
    case Step::kWrite:
    case Step::kRepeat:
      break;
  }
  fail<InternalError>("no step");
}

void ProgramRun::run(const Instruction& instruction, size_t number) {
  const ModuleScope module("op" + std::to_string(number));
  if (instruction.step == Step::kWrite) return write(instruction);
  values_.push_back(result_of(instruction));
}

}  // namespace lockstep::fuzz
