#include "runtime/kernels/on_gpu/canonical_self_test.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include <chrono>
#include <tuple>
#include <vector>

#include "core/error.h"
#include "runtime/kernels/tensors/canonical_attention.h"
#include "runtime/kernels/tensors/canonical_sums.h"
#include "runtime/kernels/tensors/cpu_kernels.h"
#include "runtime/kernels/tensors/elementwise.h"
#include "runtime/kernels/tensors/softmax.h"

namespace lockstep::on_gpu {
namespace {

using at::Tensor;
using Tensors = std::vector<Tensor>;
using kernels::Summands;

/// No multiples of a tile, a leaf or a warp; sums of several leaves.
constexpr int64_t kRows = 70, kColumns = 37, kLength = 300, kSamples = 3;

/// On one device.
struct Operands {
  Tensor x, y;    ///< [kSamples, kRows, kLength]
  Tensor heads;   ///< [1, 2, kLength, 12]
  Tensor weight;  ///< [kColumns, kLength]
  Tensor row;     ///< [kLength], float32
  Tensor tokens;  ///< int64 [kSamples * kRows]
  Tensor odd;     ///< zeros of both signs, subnormal numbers, infinities, NaN and others
};

Operands operands_of(c10::ScalarType dtype) {
  const auto generator = at::detail::createCPUGenerator(1);
  const auto make = [&](c10::IntArrayRef sizes) {
    const auto numbers = at::randn(sizes, generator, c10::kDouble);
    return at::mul(numbers, at::exp(at::randn(sizes, generator, c10::kDouble))).to(dtype);
  };
  return {make({kSamples, kRows, kLength}),
          make({kSamples, kRows, kLength}),
          make({1, 2, kLength, 12}),
          make({kColumns, kLength}),
          make({kLength}).to(c10::kFloat),
          at::arange(kSamples * kRows).mul(7).remainder(11),
          at::cat({at::tensor({0.0, -0.0, 1e-40, -1e-40, 1e38, 0.5, 1.5}), at::full({1}, INFINITY), at::full({1}, NAN),
                   at::arange(-40, 40).mul(1.37)})
              .to(dtype)};
}

Operands there(const Operands& here) {
  const auto to = [](const Tensor& tensor) { return tensor.to(c10::kCUDA); };
  return {to(here.x), to(here.y), to(here.heads), to(here.weight), to(here.row), to(here.tokens), to(here.odd)};
}

template <class... T>
Tensors all_of(const std::tuple<T...>& results) {
  return std::apply([](const auto&... each) { return Tensors{each...}; }, results);
}

struct Kernel {
  const char* name;
  Tensors (*run)(const Operands& of);
};

/// LibTorch's own, which forms are composed of.
Tensors single_operations(const Operands& of) {
  const auto &x = of.x, &y = of.y;
  const auto wide = x.to(c10::kFloat), integers = at::round(at::mul(wide, 1000)).to(c10::kLong);
  return {x + y,
          x - y,
          x * y,
          at::mul(x, 0.1),
          x / y,
          at::sqrt(at::abs(wide)),
          at::amax(x, -1),
          at::round(x),
          at::sum(integers),
          at::where(at::gt(x, y), x, y),
          wide.to(c10::kBFloat16),
          of.odd + of.odd.flip(0),
          of.odd * of.odd.flip(0),
          of.odd / of.odd.flip(0),
          at::reciprocal(of.odd.to(c10::kFloat)),
          at::pow(of.odd.to(c10::kFloat), 3),
          at::where(at::lt(of.odd, 0), 0.1, of.odd),
          std::get<1>(at::sort(of.tokens, true, 0, false))};
}

Tensors attention(const Operands& of) {
  const auto key = of.heads.narrow(1, 0, 1);
  const auto [output, log_sum] = kernels::canonical_attention(of.heads, key, key, true, 0.3);
  auto results =
      all_of(kernels::canonical_attention_backward(of.heads, of.heads, key, key, output, log_sum, true, 0.3));
  results.insert(results.end(), {output, log_sum});
  return results;
}

/// Documents, dropout, and keys that come in two blocks.
Tensors attention_forms(const Operands& of) {
  const auto options = of.tokens.options();
  const auto places = at::remainder(at::arange(kLength, options), 130).unsqueeze(0);
  const auto draws = at::stack({at::full({kLength}, 7, options), at::full({kLength}, 9, options),
                                at::arange(kLength, options) * (kLength + 1)},
                               -1)
                         .expand({1, 2, kLength, 3});
  const auto& x = of.heads;
  const auto wide = x.options().dtype(c10::kFloat);
  auto results = all_of(kernels::canonical_attention(x, x, x, true, 0.3, 0, {places, draws, 0.3}));
  auto sums = at::zeros(x.sizes(), wide), weights = at::zeros({1, 2, kLength, kernels::kAttentionWeights}, wide);
  for (const int64_t first : {int64_t{0}, kernels::kAttentionBlock}) {
    const auto key = x.slice(2, first, first + kernels::kAttentionBlock);
    std::tie(sums, weights) = kernels::attention_over(x, key, key, sums, weights, true, 0.3, -first);
  }
  for (const auto& each : all_of(kernels::attention_result(sums, weights))) results.push_back(each);
  return results;
}

Tensors rotations(const Operands& of) {
  const auto angles = of.row.narrow(0, 0, 6).unsqueeze(0) * at::arange(kLength, of.row.options()).unsqueeze(1);
  using kernels::loops::Function;
  return {kernels::rotate_pairs(of.heads, kernels::apply(Function::kCos, angles),
                                kernels::apply(Function::kSin, angles), false)};
}

/// The last one is a part of sums.
Tensors products(const Operands& of) {
  const auto tree = SumTree::over_elements(2 * kLength);
  const kernels::ContractedRange part{tree.leaf * 8, 2 * kLength};
  const int64_t here = 2 * kLength - part.first;
  return {kernels::linear(of.x, of.weight), kernels::weight_gradient(of.x, of.y, {}),
          kernels::weight_gradient(of.x, of.y, {1, kSamples + 2}),
          kernels::linear(of.x.narrow(2, 0, here), of.weight.narrow(1, 0, here), {}, part)};
}

Tensors functions(const Operands& of) {
  using kernels::loops::Function;
  Tensors results;
  for (int f = 0; f <= static_cast<int>(Function::kGeluByTanh); ++f)
    for (const auto& x : {of.x, of.odd}) results.push_back(kernels::apply(static_cast<Function>(f), x));
  for (int g = 0; g <= static_cast<int>(kernels::loops::Gradient::kGeluByTanh); ++g)
    results.push_back(kernels::apply(static_cast<kernels::loops::Gradient>(g), of.y, of.x));
  return results;
}

Tensors adamw(const Operands& of) {
  const auto parameter = of.row.clone(), mean = of.row * 0.5, square = of.row * of.row;
  kernels::adamw(parameter, of.row, mean, square, 1e-2, 0.9, 0.95, 1e-8, 0.1, 0.19, 0.0975, 0.5);
  return {parameter, mean, square};
}

Tensors norms(const Operands& of) {
  auto results = all_of(kernels::rms_norm(of.x, of.row, 1e-5));
  const auto reciprocal = results[1];
  results.push_back(kernels::rms_norm_input_gradient(of.y, of.x, reciprocal, of.row));
  results.push_back(kernels::rms_norm_weight_gradient(of.y, of.x, reciprocal));
  return results;
}

Tensors losses(const Operands& of) {
  const auto tree = SumTree::over_elements(kLength);
  const auto logits = of.x.view({-1, kLength}), shift = at::amax(logits, -1).to(c10::kFloat);
  return {
      kernels::ordered_exponential_sum(logits, shift, Summands::all(tree)),
      kernels::cross_entropy_backward(shift, logits, shift, of.tokens),
      kernels::ordered_table_gradient(logits, of.tokens, Summands::all(SumTree::over_samples(kSamples)), kRows, 0, 12),
      kernels::fixed_point_sum(of.x),
      kernels::scaled_squares(of.x, 0x1p20),
      kernels::absolute_maximum(of.x)};
}

/// Zeros of both signs, subnormal numbers and what is none among the numbers.
Tensors few_bits(const Operands& of) {
  Tensors results;
  const auto x = of.x.view({-1, kLength}), small = at::mul(x, 1e-39);
  const auto maximum = at::amax(at::abs(x), {1}, true), any = at::full({1}, 3, of.odd.options());
  const auto odd_maximum = of.odd.narrow(0, 0, 10).unsqueeze(1);
  for (const int64_t format : {0, 1, 2, 3}) {
    for (const bool power_of_two : {false, true}) {
      results.push_back(kernels::quantize(x, maximum, format, power_of_two));
      results.push_back(kernels::quantize(of.odd, any, format, power_of_two));
      results.push_back(kernels::quantize(x.narrow(0, 0, 10), odd_maximum, format, power_of_two));
    }
    for (const auto& each : {x, small})
      for (const int64_t dim : {0, 1}) results.push_back(kernels::quantize_blocks(each, dim, format));
    results.push_back(kernels::quantize_blocks(of.odd, 0, format));
  }
  const auto codes = at::arange(256, of.tokens.options()).to(c10::kByte);
  for (const int64_t format : {0, 1})
    for (const bool power_of_two : {false, true}) {
      results.push_back(kernels::float8_codes(of.odd, any, format, power_of_two));
      results.push_back(kernels::float8_numbers(codes, any, format, power_of_two));
    }
  for (const int64_t width : {2, 256, 8192})
    results.push_back(kernels::hadamard_transform(of.x.flatten().narrow(0, 0, 3 * width).view({3, width}), 0.3));
  return results;
}

Tensors sums(const Operands& of) {
  Tensors results;
  for (int64_t dim = 0; dim < of.x.dim(); ++dim)
    results.push_back(kernels::ordered_sum(of.x, dim, Summands::all(SumTree::over_elements(of.x.size(dim)))));
  return results;
}

constexpr Kernel kKernels[] = {
    {"single operations", single_operations},
    {"products", products},
    {"sums", sums},
    {"norms", norms},
    {"gates",
     [](const Operands& of) {
       const auto both = of.x.view({kSamples, kRows / 2, 2, kLength});
       return Tensors{kernels::swiglu(both), kernels::swiglu_backward(of.y.narrow(1, 0, kRows / 2), both)};
     }},
    {"softmax",
     [](const Operands& of) {
       return Tensors{kernels::softmax(of.x, -1), kernels::log_softmax(of.x, -1),
                      kernels::softmax_backward(of.y, of.x, -1), kernels::log_softmax_backward(of.y, of.x, -1)};
     }},
    {"functions", functions},
    {"losses", losses},
    {"attention", attention},
    {"forms of attention", attention_forms},
    {"numbers of few bits", few_bits},
    {"rotations", rotations},
    {"AdamW", adamw},
};

/// NaN is NaN.
bool same_bits(const Tensor& gpu, const Tensor& cpu) {
  const auto found = gpu.cpu();
  if (found.scalar_type() != cpu.scalar_type() || found.sizes() != cpu.sizes()) return false;
  if (!cpu.is_floating_point()) return at::equal(found, cpu);
  const auto is_nan = at::isnan(cpu);
  const auto word = cpu.element_size() == 2 ? c10::kShort : c10::kInt;
  const auto bits = [&](const Tensor& x) { return x.masked_fill(is_nan, 0).contiguous().view(word); };
  return at::equal(is_nan, at::isnan(found)) && at::equal(bits(found), bits(cpu));
}

void compare(const Kernel& kernel, const Operands& here, const Operands& gpu, const Tamper& tamper,
             SelfTestReport& report) {
  const auto expected = kernel.run(here), found = kernel.run(gpu);
  for (size_t i = 0; i < expected.size(); ++i, ++report.comparisons) {
    if (tamper) tamper(kernel.name, found[i]);
    if (!same_bits(found[i], expected[i]))
      fail<Inconsistency>(
          "canonical numerics on this GPU: result {} of the self-test's {} in {} has other bits than the CPU's. Set "
          "training.device = \"cpu\" or numerics.mode = \"native\", and report it",
          i, kernel.name, c10::toString(here.x.scalar_type()));
  }
}

}  // namespace

SelfTestReport canonical_self_test(const Tamper& tamper) {
  const auto start = std::chrono::steady_clock::now();
  SelfTestReport report;
  const at::NoGradGuard no_grad;
  for (const auto dtype : {c10::kFloat, c10::kBFloat16}) {
    const auto here = operands_of(dtype), gpu = there(here);
    for (const auto& kernel : kKernels) compare(kernel, here, gpu, tamper, report);
  }
  report.milliseconds = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  return report;
}

const SelfTestReport& require_canonical_self_test() {
  static const auto report = canonical_self_test();
  return report;
}

}  // namespace lockstep::on_gpu
