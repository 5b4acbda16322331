#include "tools/bench/numerics_rows.h"

#include <ATen/Functions.h>
#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <cmath>

#include "runtime/kernels/canonical_attention.h"
#include "runtime/kernels/canonical_products.h"

namespace lockstep::bench {
namespace {

/// A linear layer and the tokens of one step.
struct Layer {
  int64_t tokens, inputs, outputs;
};

constexpr Layer kDebugmodel[] = {{512, 256, 768},  {512, 256, 256},  {512, 256, 1536},  {512, 768, 256},
                                 {512, 256, 2048}, {4096, 256, 768}, {4096, 256, 1536}, {4096, 768, 256}};
constexpr Layer kLarge[] = {{512, 2048, 3072}, {512, 2048, 16384}, {512, 8192, 2048},
                            {512, 4096, 6144}, {512, 4096, 28672}, {512, 14336, 4096}};

class Measurement {
 public:
  explicit Measurement(const NumericsOptions& options) : options_(options) {}

  std::vector<BenchRow> rows() {
    for (const Layer& layer : kDebugmodel) add(layer);
    if (options_.large)
      for (const Layer& layer : kLarge) add(layer);
    for (const int64_t length : {256, 512, 1024, 2048}) add_attention(length, 64);
    if (options_.large)
      for (const int64_t length : {4096, 8192})
        for (const int64_t size : {16, 64, 128}) add_attention(length, size);
    return std::move(rows_);
  }

 private:
  void add(const Layer& layer) {
    const auto x = at::randn({layer.tokens, layer.inputs}), gradient = at::randn({layer.tokens, layer.outputs}),
               weight = at::randn({layer.outputs, layer.inputs});
    const std::string sizes = fmt::format("{}x{}x{}", layer.tokens, layer.inputs, layer.outputs),
                      back = fmt::format("{}x{}x{}", layer.tokens, layer.outputs, layer.inputs),
                      across = fmt::format("{}x{}x{}", layer.outputs, layer.inputs, layer.tokens);
    add(
        "mm_" + sizes + "_nt", [&] { kernels::linear(x, weight); }, [&] { at::linear(x, weight); });
    add(
        "mm_" + back + "_nn", [&] { kernels::product(gradient, weight); }, [&] { at::mm(gradient, weight); });
    // One sample of all tokens: what one sequence of a batch is.
    add(
        "dw_" + across, [&] { kernels::weight_gradient(gradient.unsqueeze(0), x.unsqueeze(0), {}); },
        [&] { at::mm(gradient.t(), x); });
  }

  void add_attention(int64_t length, int64_t size) {
    const auto heads = [&] { return at::randn({1, length, 4, size}).transpose(1, 2); };
    const auto query = heads(), key = heads(), value = heads(), gradient = heads();
    const double scale = 1 / std::sqrt(static_cast<double>(size));
    add(
        fmt::format("attention_fwd_bwd_T{}_d{}", length, size),
        [&] {
          const auto [output, log_sum] = kernels::canonical_attention(query, key, value, true, scale);
          kernels::canonical_attention_backward(gradient, query, key, value, output, log_sum, true, scale);
        },
        [&] {
          const auto [output, log_sum] =
              at::_scaled_dot_product_flash_attention_for_cpu(query, key, value, 0.0, true, std::nullopt, scale);
          at::_scaled_dot_product_flash_attention_for_cpu_backward(gradient, query, key, value, output, log_sum, 0.0,
                                                                   true, std::nullopt, scale);
        });
  }

  template <class Ours, class Peer>
  void add(const std::string& name, Ours&& ours, Peer&& peer) {
    rows_.push_back(make_row(name, time_in_pairs(ours, peer, options_.paired), "libtorch", "ms", 1e3));
  }

  NumericsOptions options_;
  std::vector<BenchRow> rows_;
};

}  // namespace

std::vector<BenchRow> numerics_rows(const NumericsOptions& options) {
  at::set_num_threads(options.threads);
  return Measurement(options).rows();
}

}  // namespace lockstep::bench
