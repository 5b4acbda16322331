#include "tools/bench/gpu/gpu_op_rows.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include "core/elementary/low_precision.h"
#include "runtime/kernels/on_gpu/on_gpu.h"
#include "runtime/kernels/on_gpu/state_visit.h"
#include "runtime/kernels/tensors/canonical_attention.h"
#include "runtime/kernels/tensors/canonical_products.h"
#include "runtime/kernels/tensors/composed.h"
#include "runtime/kernels/tensors/cpu_kernels.h"
#include "runtime/plain/pinned.h"

namespace lockstep::bench {
namespace {

using at::Tensor;

constexpr int64_t kTokens = 8192, kWidth = 2048, kHidden = 8192, kVocabulary = 128256;

Tensor draw(c10::IntArrayRef sizes, c10::ScalarType dtype = c10::kBFloat16) {
  return at::randn(sizes, at::dtype(dtype).device(c10::kCUDA));
}

/// A copy that moves as many bytes as are read and written: half of them each way.
std::function<void()> copy_of(int64_t bytes) {
  const auto from = at::zeros({bytes / 2}, at::dtype(c10::kByte).device(c10::kCUDA)), to = at::empty_like(from);
  return [from, to] { to.copy_(from); };
}

void add_norm(std::vector<GpuCase>& cases) {
  const auto x = draw({kTokens, kWidth}), weight = draw({kWidth}), slope = draw({kTokens, kWidth});
  const auto reciprocal = std::get<1>(on_gpu::rms_norm(x, weight, 1e-5));
  const auto bytes = static_cast<int64_t>(x.nbytes());
  const auto forward = [=] { on_gpu::rms_norm(x, weight, 1e-5); };
  const auto backward = [=] { on_gpu::rms_norm_backward(slope, x, reciprocal, weight); };
  cases.push_back({"rms_norm_memory", forward, "copy", copy_of(2 * bytes)});
  cases.push_back({"rms_norm", forward, "LibTorch", [=] { at::_fused_rms_norm(x, {kWidth}, weight, 1e-5); }});
  cases.push_back({"rms_norm_backward_memory", backward, "copy", copy_of(3 * bytes)});
  const auto saved = reciprocal.unsqueeze(-1);
  cases.push_back({"rms_norm_backward", backward, "LibTorch", [=] {
                     at::_fused_rms_norm_backward(slope, x, {kWidth}, saved, weight, {true, true});
                   }});
}

void add_gate(std::vector<GpuCase>& cases) {
  const auto both = draw({kTokens, 2, kHidden}), slope = draw({kTokens, kHidden});
  const auto bytes = static_cast<int64_t>(slope.nbytes());
  cases.push_back({"swiglu_memory", [=] { on_gpu::swiglu(both); }, "copy", copy_of(3 * bytes)});
  cases.push_back({"swiglu", [=] { on_gpu::swiglu(both); }, "LibTorch",
                   [=] { at::silu(both.select(1, 0)).mul_(both.select(1, 1)); }});
  cases.push_back(
      {"swiglu_backward_memory", [=] { on_gpu::swiglu_backward(slope, both); }, "copy", copy_of(5 * bytes)});
}

void add_attention(std::vector<GpuCase>& cases) {
  const auto memory = draw({4, 2048, 32, 64}), query = memory.transpose(1, 2);
  const auto key = draw({4, 2048, 8, 64}).transpose(1, 2), value = draw({4, 2048, 8, 64}).transpose(1, 2);
  const auto angles = draw({2048, 32}, c10::kFloat), cosines = at::cos(angles), sines = at::sin(angles);
  const auto bytes = static_cast<int64_t>(memory.nbytes());
  cases.push_back(
      {"rotate_pairs_memory", [=] { on_gpu::rotate_pairs(query, cosines, sines, false); }, "copy", copy_of(2 * bytes)});
  const auto forward = on_gpu::attention(query, key, value, true, 0.125, 0);
  cases.push_back({"attention", [=] { on_gpu::attention(query, key, value, true, 0.125, 0); }, "scores held",
                   [=] { composed::attention(query, key, value, true, 0.125, 0); }});
  const auto backward = [=](auto* function) {
    return [=] { function(query, query, key, value, std::get<0>(forward), std::get<1>(forward), true, 0.125, 0); };
  };
  cases.push_back({"attention_backward", backward(on_gpu::attention_backward), "scores held",
                   backward(composed::attention_backward)});
}

void add_loss(std::vector<GpuCase>& cases) {
  const auto logits = draw({kTokens / 2, kVocabulary}), shift = at::amax(logits, {1}).to(c10::kFloat);
  const auto slope = at::ones_like(shift);
  const auto target = at::arange(logits.size(0), shift.options().dtype(c10::kLong));
  const auto bytes = static_cast<int64_t>(logits.nbytes());
  cases.push_back({"exponential_sum_memory", [=] { on_gpu::exponential_sum(logits, shift); }, "copy", copy_of(bytes)});
  cases.push_back({"cross_entropy_backward_memory",
                   [=] { on_gpu::cross_entropy_backward(slope, logits, shift, target); }, "copy", copy_of(2 * bytes)});
}

void add_optimizer(std::vector<GpuCase>& cases) {
  std::vector<Tensor> state;
  for (int i = 0; i < 4; ++i) state.push_back(draw({1 << 27}, c10::kFloat).abs_());
  const auto bytes = static_cast<int64_t>(state[0].nbytes());
  const auto own = [=] {
    on_gpu::adamw(state[0], state[1], state[2], state[3], 1e-3, 0.9, 0.95, 1e-8, 0.1, 0.1, 0.05, 1);
  };
  cases.push_back({"adamw_memory", own, "copy", copy_of(7 * bytes)});
  const auto step = at::ones({}, state[0].options());
  cases.push_back({"adamw", own, "LibTorch", [=] {
                     const auto list = [&](int i) { return std::vector<Tensor>{state[static_cast<size_t>(i)]}; };
                     at::_fused_adamw_(list(0), list(1), list(2), list(3), {}, {step}, 1e-3, 0.9, 0.95, 0.1, 1e-8,
                                       /*amsgrad=*/false, /*maximize=*/false);
                   }});
  const auto means = pinned_tensor({1 << 27}, c10::kFloat).fill_(0.5),
             squares = pinned_tensor({1 << 27}, c10::kFloat).fill_(0.5);
  cases.push_back({"adamw_offloaded",
                   [=] {
                     on_gpu::update_visiting_state(state[0], state[1], means, squares, [](const auto&... each) {
                       on_gpu::adamw(each..., 1e-3, 0.9, 0.95, 1e-8, 0.1, 0.1, 0.05, 1);
                     });
                     on_gpu::wait_for_state();
                   },
                   "moments to the GPU alone",
                   [=] {
                     state[2].copy_(means, /*non_blocking=*/true);
                     state[3].copy_(squares, /*non_blocking=*/true);
                   }});
  cases.push_back({"sum_of_squares_memory", [=] { on_gpu::sum_of_squares(state[1]); }, "copy", copy_of(bytes)});
  cases.push_back({"sum_of_squares", [=] { on_gpu::sum_of_squares(state[1]); }, "LibTorch's norm",
                   [=] { at::linalg_vector_norm(state[1]); }});
}

/// With the CPU's bits, beside what native numerics takes.
void add_canonical(std::vector<GpuCase>& cases) {
  for (const auto dtype : {c10::kFloat, c10::kBFloat16}) {
    const std::string suffix = dtype == c10::kFloat ? "_float32" : "_bfloat16";
    const auto x = draw({kTokens / 2, kWidth}, dtype), weight = draw({kWidth, kWidth}, dtype);
    const auto samples = x.view({4, -1, kWidth});
    cases.push_back(
        {"canonical_linear" + suffix, [=] { kernels::linear(x, weight); }, "LibTorch", [=] { at::linear(x, weight); }});
    cases.push_back({"canonical_weight_gradient" + suffix, [=] { kernels::weight_gradient(samples, samples, {}); },
                     "LibTorch", [=] { at::mm(x.t(), x); }});
  }
  const auto x = draw({kTokens, kWidth}), weight = draw({kWidth}), both = draw({kTokens, 2, kHidden});
  const auto heads = draw({1, 8, kTokens / 8, 64});
  const auto backward = [=, forward = kernels::canonical_attention(heads, heads, heads, true, 0.125)] {
    const auto& [output, log_sum] = forward;
    kernels::canonical_attention_backward(heads, heads, heads, heads, output, log_sum, true, 0.125);
  };
  const auto native_backward = [=, forward = on_gpu::attention(heads, heads, heads, true, 0.125, 0)] {
    const auto& [output, log_sum] = forward;
    on_gpu::attention_backward(heads, heads, heads, heads, output, log_sum, true, 0.125, 0);
  };
  cases.push_back({"canonical_rms_norm", [=] { kernels::rms_norm(x, weight, 1e-5); }, "native numerics",
                   [=] { on_gpu::rms_norm(x, weight, 1e-5); }});
  cases.push_back(
      {"canonical_swiglu", [=] { kernels::swiglu(both); }, "native numerics", [=] { on_gpu::swiglu(both); }});
  cases.push_back({"canonical_attention", [=] { kernels::canonical_attention(heads, heads, heads, true, 0.125); },
                   "native numerics", [=] { on_gpu::attention(heads, heads, heads, true, 0.125, 0); }});
  cases.push_back({"canonical_attention_backward", backward, "native numerics", native_backward});
}

void add_low_precision(std::vector<GpuCase>& cases) {
  const auto x = draw({kTokens, kWidth}, c10::kFloat), maximum = at::amax(at::abs(x), {1}, /*keepdim=*/true);
  const auto copy = copy_of(2 * static_cast<int64_t>(x.nbytes()));
  const auto format = static_cast<int64_t>(elementary::NumberFormat::kE4m3);
  cases.push_back({"canonical_quantize_memory", [=] { kernels::quantize(x, maximum, format, true); }, "copy", copy});
  cases.push_back({"canonical_quantize_blocks_memory", [=] { kernels::quantize_blocks(x, 1, format); }, "copy", copy});
  cases.push_back({"canonical_hadamard_memory", [=] { kernels::hadamard_transform(x, 0.5); }, "copy", copy});
}

/// Products of eight bits beside those of bfloat16, with and without what makes the codes.
void add_float8(std::vector<GpuCase>& cases) {
  const auto x = draw({kTokens, kWidth}), weight = draw({kHidden, kWidth}), slope = draw({kTokens, kHidden});
  const auto of_rows = [](const Tensor& each, int64_t dim) { return at::amax(at::abs(each), {dim}, true); };
  const auto codes = [](const Tensor& each, const Tensor& maxima) {
    return kernels::float8_codes(each, maxima, static_cast<int64_t>(elementary::NumberFormat::kE4m3), true);
  };
  const auto x_maxima = of_rows(x, 1), weight_maxima = of_rows(weight, 1);
  const auto x_codes = codes(x, x_maxima), weight_codes = codes(weight, weight_maxima);
  cases.push_back(
      {"float8_codes_memory", [=] { codes(x, x_maxima); }, "copy", copy_of(static_cast<int64_t>(x.nbytes()) * 3 / 2)});
  cases.push_back(
      {"float8_linear_of_codes",
       [=] { on_gpu::float8_linear(x_codes, x_maxima, weight_codes, weight_maxima, 0, true, at::kBFloat16); },
       "LibTorch's bfloat16", [=] { at::linear(x, weight); }});
  cases.push_back({"float8_linear",
                   [=] {
                     const auto rows = of_rows(x, 1), of_weight = of_rows(weight, 1);
                     on_gpu::float8_linear(codes(x, rows), rows, codes(weight, of_weight), of_weight, 0, true,
                                           at::kBFloat16);
                   },
                   "LibTorch's bfloat16", [=] { at::linear(x, weight); }});
  cases.push_back({"float8_weight_gradient",
                   [=] {
                     const auto of_slope = of_rows(slope, 0), of_x = of_rows(x, 0);
                     on_gpu::float8_weight_gradient(codes(slope, of_slope), of_slope, codes(x, of_x), of_x, 0, true);
                   },
                   "LibTorch's bfloat16", [=] { at::mm(slope.t(), x); }});
}

}  // namespace

std::vector<GpuCase> gpu_op_cases() {
  std::vector<GpuCase> cases;
  for (const auto add :
       {add_norm, add_gate, add_attention, add_loss, add_optimizer, add_canonical, add_low_precision, add_float8})
    add(cases);
  return cases;
}

}  // namespace lockstep::bench
