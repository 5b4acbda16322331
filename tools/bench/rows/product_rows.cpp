// Matrix products and attention, kernel beside kernel.
#include <ATen/Functions.h>
#include <ATen/Parallel.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <fmt/format.h>

#include <cmath>

#include "runtime/kernels/tensors/canonical_attention.h"
#include "runtime/kernels/tensors/canonical_products.h"
#include "runtime/kernels/tensors/cpu_kernels.h"
#include "tools/bench/rows/numerics_rows.h"

namespace lockstep::bench {
namespace {

/// A linear layer and the tokens of one step.
struct Layer {
  int64_t tokens, inputs, outputs;
};

// qkv, attention output, gate and up, down; the debugmodel's vocabulary.
constexpr Layer kLayers[] = {{512, 256, 768},    {512, 256, 256},   {512, 256, 1536},  {512, 768, 256},
                             {512, 256, 2048},   {4096, 256, 768},  {4096, 256, 256},  {4096, 256, 1536},
                             {4096, 768, 256},   {4096, 256, 2048}, {256, 2048, 3072}, {256, 2048, 2048},
                             {256, 2048, 16384}, {256, 8192, 2048}, {256, 4096, 6144}, {256, 4096, 4096},
                             {256, 4096, 28672}, {256, 14336, 4096}};

/// LibTorch has it for compiled programs; at::linear in fp32 is MKL.
at::Tensor onednn_linear(const at::Tensor& x, const at::Tensor& weight) {
  using Signature = at::Tensor(const at::Tensor&, const at::Tensor&, const std::optional<at::Tensor>&, c10::string_view,
                               c10::List<std::optional<at::Scalar>>, std::optional<c10::string_view>);
  static const auto op =
      c10::Dispatcher::singleton().findSchemaOrThrow("mkldnn::_linear_pointwise", "").typed<Signature>();
  return op.call(x, weight, std::nullopt, "none", c10::List<std::optional<at::Scalar>>(), "");
}

class Cases {
 public:
  explicit Cases(int threads) : threads_(threads) {}

  void add(const Layer& layer) {
    const auto [tokens, inputs, outputs] = layer;
    add(fmt::format("mm_{}x{}x{}_nt", tokens, inputs, outputs), [layer](const auto& time) {
      const auto x = at::randn({layer.tokens, layer.inputs}), weight = at::randn({layer.outputs, layer.inputs});
      return time([&] { kernels::linear(x, weight); }, [&] { at::linear(x, weight); });
    });
    add(
        fmt::format("mm_{}x{}x{}_nt_onednn", tokens, inputs, outputs),
        [layer](const auto& time) {
          const auto x = at::randn({layer.tokens, layer.inputs}), weight = at::randn({layer.outputs, layer.inputs});
          return time([&] { kernels::linear(x, weight); }, [&] { onednn_linear(x, weight); });
        },
        "onednn");
    add(fmt::format("mm_{}x{}x{}_nn", tokens, outputs, inputs), [layer](const auto& time) {
      const auto gradient = at::randn({layer.tokens, layer.outputs}), weight = at::randn({layer.outputs, layer.inputs});
      return time([&] { kernels::product(gradient, weight); }, [&] { at::mm(gradient, weight); });
    });
    // One sample of all tokens: what one sequence of a batch is.
    add(fmt::format("mm_{}x{}x{}_tn", outputs, tokens, inputs), [layer](const auto& time) {
      const auto gradient = at::randn({layer.tokens, layer.outputs}), x = at::randn({layer.tokens, layer.inputs});
      return time([&] { kernels::weight_gradient(gradient.unsqueeze(0), x.unsqueeze(0), {}); },
                  [&] { at::mm(gradient.t(), x); });
    });
  }

  void add_attention(int64_t length, int64_t size) {
    add(fmt::format("attention_fwd_bwd_T{}{}", length, size == 64 ? "" : fmt::format("_d{}", size)),
        [length, size](const auto& time) {
          const auto heads = [&] { return at::randn({1, length, 4, size}).transpose(1, 2); };
          const auto query = heads(), key = heads(), value = heads(), gradient = heads();
          const double scale = 1 / std::sqrt(static_cast<double>(size));
          return time(
              [&] {
                const auto [output, log_sum] = kernels::canonical_attention(query, key, value, true, scale);
                kernels::canonical_attention_backward(gradient, query, key, value, output, log_sum, true, scale);
              },
              [&] {
                const auto [output, log_sum] =
                    at::_scaled_dot_product_flash_attention_for_cpu(query, key, value, 0.0, true, std::nullopt, scale);
                at::_scaled_dot_product_flash_attention_for_cpu_backward(gradient, query, key, value, output, log_sum,
                                                                         0.0, true, std::nullopt, scale);
              });
        });
  }

  /// LibTorch's holds the matrix of all weights; both draw them.
  void add_attention_with_dropout(int64_t length) {
    constexpr double kDropout = 0.1;
    add(fmt::format("attention_dropout_fwd_bwd_T{}", length), [length](const auto& time) {
      const auto heads = [&] { return at::randn({1, length, 4, 64}).transpose(1, 2).requires_grad_(); };
      const auto query = heads(), key = heads(), value = heads(), gradient = heads().detach();
      const auto places = at::arange(length).unsqueeze(0);
      return time(
          [&] {
            const at::NoGradGuard plain;
            const auto draws = kernels::attention_draws(query, length, 0);
            const kernels::AttentionRows rows{places, draws, kDropout};
            const auto [output, log_sum] = kernels::canonical_attention(query, key, value, true, 0.125, 0, rows);
            kernels::canonical_attention_backward(gradient, query, key, value, output, log_sum, true, 0.125, 0, {},
                                                  rows);
          },
          [&] { at::scaled_dot_product_attention(query, key, value, {}, kDropout, true).backward(gradient); });
    });
  }

  std::vector<NumericsCase> all;

 private:
  /// `body` makes operands and calls time(ours, peer).
  template <class Body>
  void add(const std::string& name, const Body& body, const char* peer_name = "libtorch") {
    const std::string full = threads_ == 1 ? name : fmt::format("{}_t{}", name, threads_);
    all.push_back({full, [full, body, peer_name, threads = threads_](PairedOptions options) {
                     at::set_num_threads(threads);
                     options.own_time = threads == 1;
                     const auto timing =
                         body([&](auto&& ours, auto&& peer) { return time_in_pairs(ours, peer, options); });
                     return make_row(full, timing, peer_name, "ms", 1e3);
                   }});
  }

  int threads_;
};

}  // namespace

std::vector<NumericsCase> product_cases(int threads) {
  Cases cases(threads);
  for (const Layer& layer : kLayers) cases.add(layer);
  for (const int64_t length : {256, 512, 1024, 2048, 4096, 8192}) cases.add_attention(length, 64);
  if (threads == 1)
    for (const auto& [length, size] : {std::pair{256, 16}, {1024, 16}, {1024, 128}}) cases.add_attention(length, size);
  if (threads == 1)
    for (const int64_t length : {512, 2048}) cases.add_attention_with_dropout(length);
  return std::move(cases.all);
}

}  // namespace lockstep::bench
