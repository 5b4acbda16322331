// Activations, of IEEE operations and of Lockstep's own exponential and logarithm.
#include "runtime/planning/rules/canonical/canonical_forms.h"
#include "runtime/planning/rules/canonical/elementwise_call.h"

namespace lockstep::rules {
namespace {

using at::Tensor;
using kernels::loops::Function;

Tensor own_exp(const Tensor& x) { return kernels::apply(Function::kExp, x.contiguous()); }
Tensor zeros(const Tensor& like) { return at::zeros({}, like.options()); }

double number(const LocalCall& call, const torch::jit::Stack& stack, const char* name) {
  return call.argument(stack, name).toScalar().toDouble();
}

/// The one of the two operands that says where the function bends: the argument's name differs.
const char* bend(const LocalCall& call) {
  return has_argument(call.op.schema(), "self_or_result") ? "self_or_result" : "self";
}

void local_expm1(const LocalCall& call, torch::jit::Stack& stack) {
  elementwise(call, stack, {"self"}, [](const auto& x) { return own_expm1(x[0]); });
}

void local_leaky_relu(const LocalCall& call, torch::jit::Stack& stack) {
  const double slope = number(call, stack, "negative_slope");
  elementwise(call, stack, {"self"},
              [slope](const auto& x) { return at::where(at::gt(x[0], 0), x[0], at::mul(x[0], slope)); });
}

void local_leaky_relu_backward(const LocalCall& call, torch::jit::Stack& stack) {
  const double slope = number(call, stack, "negative_slope");
  elementwise(call, stack, {"grad_output", "self"},
              [slope](const auto& x) { return at::where(at::gt(x[1], 0), x[0], at::mul(x[0], slope)); });
}

void local_elu(const LocalCall& call, torch::jit::Stack& stack) {
  const double scale = number(call, stack, "scale"), negative = number(call, stack, "alpha") * scale,
               inner = number(call, stack, "input_scale");
  elementwise(call, stack, {"self"}, [&](const auto& x) {
    return at::where(at::gt(x[0], 0), at::mul(x[0], scale), at::mul(own_expm1(at::mul(x[0], inner)), negative));
  });
}

void local_elu_backward(const LocalCall& call, torch::jit::Stack& stack) {
  const double scale = number(call, stack, "scale"), negative = number(call, stack, "alpha") * scale,
               inner = number(call, stack, "input_scale");
  const bool is_result = call.argument(stack, "is_result").toBool();
  elementwise(call, stack, {"grad_output", bend(call)}, [&](const auto& x) {
    const auto slope = is_result ? at::add(x[1], negative) : at::mul(own_exp(at::mul(x[1], inner)), negative);
    return at::where(at::gt(x[1], 0), at::mul(x[0], scale), at::mul(at::mul(x[0], inner), slope));
  });
}

void local_softplus(const LocalCall& call, torch::jit::Stack& stack) {
  const double beta = number(call, stack, "beta"), threshold = number(call, stack, "threshold");
  elementwise(call, stack, {"self"}, [&](const auto& x) {
    const auto scaled = at::mul(x[0], beta);
    return at::where(at::gt(scaled, threshold), x[0],
                     at::div(own_log1p(own_exp(scaled)), at::full({}, beta, scaled.options())));
  });
}

void local_softplus_backward(const LocalCall& call, torch::jit::Stack& stack) {
  const double beta = number(call, stack, "beta"), threshold = number(call, stack, "threshold");
  elementwise(call, stack, {"grad_output", "self"}, [&](const auto& x) {
    const auto scaled = at::mul(x[1], beta), z = own_exp(scaled);
    return at::where(at::gt(scaled, threshold), x[0], at::div(at::mul(x[0], z), at::add(z, 1)));
  });
}

void local_mish(const LocalCall& call, torch::jit::Stack& stack) {
  elementwise(call, stack, {"self"},
              [](const auto& x) { return at::mul(x[0], kernels::apply(Function::kTanh, own_log1p(own_exp(x[0])))); });
}

void local_hardsigmoid(const LocalCall& call, torch::jit::Stack& stack) {
  elementwise(call, stack, {"self"}, [](const auto& x) { return at::div(at::clamp(at::add(x[0], 3), 0, 6), 6); });
}

void local_hardsigmoid_backward(const LocalCall& call, torch::jit::Stack& stack) {
  elementwise(call, stack, {"grad_output", "self"}, [](const auto& x) {
    const auto rises = at::logical_and(at::gt(x[1], -3), at::lt(x[1], 3));
    return at::where(rises, at::mul(x[0], 1.0F / 6.0F), zeros(x[0]));  // LibTorch has a float here, in doubles too
  });
}

void local_hardswish(const LocalCall& call, torch::jit::Stack& stack) {
  elementwise(call, stack, {"self"},
              [](const auto& x) { return at::div(at::mul(x[0], at::clamp(at::add(x[0], 3), 0, 6)), 6); });
}

void local_hardswish_backward(const LocalCall& call, torch::jit::Stack& stack) {
  elementwise(call, stack, {"grad_output", "self"}, [](const auto& x) {
    const auto inner = at::mul(x[0], at::add(at::div(x[1], 3), 0.5));
    return at::where(at::le(x[1], -3), zeros(x[0]), at::where(at::lt(x[1], 3), inner, x[0]));
  });
}

/// Of an input that is NaN LibTorch's vector loop gives 0, its scalar tail the gradient.
void local_hardtanh_backward(const LocalCall& call, torch::jit::Stack& stack) {
  const double least = number(call, stack, "min_val"), most = number(call, stack, "max_val");
  elementwise(call, stack, {"grad_output", "self"}, [&](const auto& x) {
    return at::where(at::logical_and(at::gt(x[1], least), at::lt(x[1], most)), x[0], zeros(x[0]));
  });
}

/// Of NaN, too, LibTorch's two loops give two values.
at::Tensor is_far(const at::Tensor& x, double limit) { return at::logical_or(at::gt(x, limit), at::lt(x, -limit)); }

void local_hardshrink(const LocalCall& call, torch::jit::Stack& stack) {
  const double limit = number(call, stack, "lambd");
  elementwise(call, stack, {"self"},
              [&](const auto& x) { return at::where(at::le(at::abs(x[0]), limit), zeros(x[0]), x[0]); });
}

template <const char* kGradient>
void local_shrink_backward(const LocalCall& call, torch::jit::Stack& stack) {
  const double limit = number(call, stack, "lambd");
  elementwise(call, stack, {kGradient, "self"},
              [&](const auto& x) { return at::where(is_far(x[1], limit), x[0], zeros(x[0])); });
}

constexpr char kOfHardshrink[] = "grad_out", kOfSoftshrink[] = "grad_output";

constexpr CanonicalRule kForms[] = {
    {"elu", local_elu},
    {"elu_backward", local_elu_backward},
    {"expm1", local_expm1},
    {"hardsigmoid", local_hardsigmoid},
    {"hardsigmoid_backward", local_hardsigmoid_backward},
    {"hardshrink", local_hardshrink},
    {"hardshrink_backward", local_shrink_backward<kOfHardshrink>},
    {"hardswish", local_hardswish},
    {"hardswish_backward", local_hardswish_backward},
    {"hardtanh_backward", local_hardtanh_backward},
    {"leaky_relu", local_leaky_relu},
    {"leaky_relu_backward", local_leaky_relu_backward},
    {"mish", local_mish},
    {"softplus", local_softplus},
    {"softplus_backward", local_softplus_backward},
    {"softshrink_backward", local_shrink_backward<kOfSoftshrink>},
};

}  // namespace

std::span<const CanonicalRule> canonical_activations() { return kForms; }

}  // namespace lockstep::rules
