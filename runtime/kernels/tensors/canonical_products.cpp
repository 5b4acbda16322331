#include "runtime/kernels/tensors/canonical_products.h"

#include <ATen/ExpandUtils.h>
#include <ATen/Functions.h>
#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <fmt/ranges.h>

#include "core/error.h"
#include "runtime/kernels/cuda/canonical/canonical_kernels.h"
#include "runtime/kernels/products/product_loops.h"
#include "runtime/kernels/tensors/gpu_numbers.h"
#include "runtime/kernels/tensors/join_nodes.h"
#include "runtime/kernels/tensors/parallel.h"
#include "runtime/kernels/tensors/parallel_workers.h"

namespace lockstep::kernels {
namespace {

using at::Tensor;

constexpr double kSmallProduct = 1 << 18;  ///< fma; smaller ones are not handed to other threads

/// A factor as a tensor [rows, samples, elements].
template <class Input>
Factor<Input> factor_of(const Tensor& tensor) {
  return {static_cast<const Input*>(tensor.const_data_ptr()), tensor.stride(0), tensor.stride(1), tensor.stride(2)};
}

/// `compute(Input, T)` with the types of factors and sums, as null pointers.
template <class Compute>
void with_types(c10::ScalarType dtype, const Compute& compute) {
  switch (dtype) {
    case c10::kFloat:
      return compute(static_cast<float*>(nullptr), static_cast<float*>(nullptr));
    case c10::kDouble:
      return compute(static_cast<double*>(nullptr), static_cast<double*>(nullptr));
    case c10::kBFloat16:
      return compute(static_cast<Bfloat16*>(nullptr), static_cast<float*>(nullptr));
    default:
      fail<BadInput>("canonical products take float32, float64 and bfloat16, not {}", c10::toString(dtype));
  }
}

template <class T>
ProductOutput<T> output_of(const Tensor& out) {
  return {out.mutable_data_ptr<T>(), out.stride(1), out.stride(0)};
}

void multiply_on_gpu(const Tensor& a, const Tensor& b, const Contraction& contraction, const Tensor& out) {
  with_types(a.scalar_type(), [&]<class Input, class T>(Input*, T*) {
    if constexpr (std::is_same_v<T, double>)
      (void)is_on_gpu(a, "a product");
    else
      cuda::canonical::product<Input>(a.size(0), b.size(0), factor_of<Input>(a), factor_of<Input>(b), contraction,
                                      output_of<T>(out));
  });
}

/// a [m, samples, k], b [n, samples, k] -> out [nodes, m, n].
void multiply(const Tensor& a, const Tensor& b, const Contraction& contraction, const Tensor& out) {
  if (a.is_cuda()) return multiply_on_gpu(a, b, contraction, out);
  const double operations = static_cast<double>(a.numel()) * static_cast<double>(b.size(0));
  const Workers workers = parallel_workers(operations);
  with_types(a.scalar_type(), [&]<class Input, class T>(Input*, T*) {
    product<Input, T>(a.size(0), b.size(0), factor_of<Input>(a), factor_of<Input>(b), contraction, output_of<T>(out),
                      workers);
  });
}

/// The only node, rounded to the dtype of the operands.
Tensor finished(const Tensor& nodes, const Tensor& like) { return nodes.select(0, 0).to(like.scalar_type()); }

/// The nodes that open ones add up to, with their levels rounded on the way.
Tensor joined(const Tensor& nodes, const Contraction& contraction, c10::ScalarType dtype) {
  if (contraction.open_levels == 0 || nodes.size(0) == 0) return nodes;
  const auto places = nodes_of(contraction);
  std::vector<OrderedNode> parts;
  for (size_t p = 0; p < places.size(); ++p) parts.push_back({places[p], nodes[static_cast<int64_t>(p)]});
  const RoundedLevels rounding{contraction.open_levels, dtype};
  return join_nodes(SumTree::over_elements(contraction.all_elements), parts, nodes.options(), nodes.sizes().slice(1),
                    rounding);
}

void check_dtypes(const Tensor& a, const Tensor& b) {
  if (a.scalar_type() != b.scalar_type())
    fail<BadInput>("a product of {} and {}", c10::toString(a.scalar_type()), c10::toString(b.scalar_type()));
}

int64_t product_of(c10::IntArrayRef sizes) { return c10::multiply_integers(sizes); }

/// Leading dimensions that both have in common after broadcasting, as one.
struct Batches {
  Batches(const Tensor& left, const Tensor& right)
      : sizes(at::infer_size_dimvector(left.sizes().slice(0, left.dim() - 2), right.sizes().slice(0, right.dim() - 2))),
        a(flat(left)),
        b(flat(right)) {}

  c10::DimVector sizes;
  Tensor a, b;  ///< [batch, m, k] and [batch, k, n]

 private:
  Tensor flat(const Tensor& tensor) const {
    std::vector<int64_t> all(sizes.begin(), sizes.end());
    all.insert(all.end(), {tensor.size(-2), tensor.size(-1)});
    return tensor.expand(all).reshape({product_of(sizes), tensor.size(-2), tensor.size(-1)});
  }
};

/// Small ones side by side, large ones one after the other on all threads.
void multiply_batches(const Batches& batches, const Contraction& contraction, const Tensor& out) {
  const auto one = [&](int64_t i) {
    multiply(batches.a.select(0, i).unsqueeze(1), batches.b.select(0, i).t().unsqueeze(1), contraction,
             out.select(1, i));
  };
  const int64_t count = batches.a.size(0), threads = at::get_num_threads();
  const double operations = static_cast<double>(batches.a.numel()) * static_cast<double>(batches.b.size(2));
  if (!out.is_cuda() && count >= threads && operations >= kSmallProduct) {
    parallel_for(0, count, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) one(i);
    });
  } else {
    for (int64_t i = 0; i < count; ++i) one(i);
  }
}

/// [b, ..., width] -> [width, b, positions].
Tensor by_sample(const Tensor& tensor) {
  const int64_t samples = tensor.size(0), width = tensor.size(-1);
  const int64_t positions = product_of(tensor.sizes().slice(1, tensor.dim() - 2));
  return tensor.reshape({samples, positions, width}).permute({2, 0, 1});
}

}  // namespace

Tensor empty_nodes(const Contraction& contraction, std::vector<int64_t> sizes, const Tensor& like) {
  sizes.insert(sizes.begin(), static_cast<int64_t>(nodes_of(contraction).size()));
  const auto wide = like.scalar_type() == c10::kDouble ? c10::kDouble : c10::kFloat;
  return at::empty(sizes, like.options().dtype(wide));
}

void sum_outer_products(const Tensor& left, const Tensor& right, const ProductPlan& plan, const Tensor& out) {
  if (plan.positions == 0 || out.numel() == 0) return;
  if (left.is_cuda()) fail<BadInput>("products of experts have no canonical form on a GPU");
  const auto a = left.t().unsqueeze(1), b = right.t().unsqueeze(1);
  const Workers workers = parallel_workers(static_cast<double>(a.numel()) * static_cast<double>(b.size(0)));
  with_types(left.scalar_type(), [&]<class Input, class T>(Input*, T*) {
    product_along<Input, T>(a.size(0), b.size(0), factor_of<Input>(a), factor_of<Input>(b), plan, output_of<T>(out),
                            workers);
  });
}

Tensor product(const Tensor& a, const Tensor& b, const ContractedRange& range) {
  check_dtypes(a, b);
  if (a.dim() < 2 || b.dim() < 2 || a.size(-1) != b.size(-2))
    fail<BadInput>("a product of sizes {} and {}", fmt::join(a.sizes(), "x"), fmt::join(b.sizes(), "x"));
  const Contraction contraction = range.elements(a.size(-1));
  const Batches batches(a, b);
  Tensor nodes = empty_nodes(contraction, {batches.a.size(0), a.size(-2), b.size(-1)}, a);
  if (nodes.numel() > 0) multiply_batches(batches, contraction, nodes);
  std::vector<int64_t> sizes(batches.sizes.begin(), batches.sizes.end());
  sizes.insert(sizes.begin(), nodes.size(0));
  sizes.insert(sizes.end(), {a.size(-2), b.size(-1)});
  nodes = joined(nodes.view(sizes), contraction, a.scalar_type());
  return range.stays_open() ? nodes : finished(nodes, a);
}

Tensor linear(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias,
              const ContractedRange& range) {
  check_dtypes(input, weight);
  if (input.dim() < 1 || weight.dim() != 2 || input.size(-1) != weight.size(1))
    fail<BadInput>("linear of sizes {} and {}", fmt::join(input.sizes(), "x"), fmt::join(weight.sizes(), "x"));
  const Contraction contraction = range.elements(input.size(-1));
  const int64_t rows = product_of(input.sizes().slice(0, input.dim() - 1));
  Tensor nodes = empty_nodes(contraction, {rows, weight.size(0)}, input);
  if (nodes.numel() > 0)
    multiply(input.reshape({rows, input.size(-1)}).unsqueeze(1), weight.unsqueeze(1), contraction, nodes);
  if (bias && (range.stays_open() || range.rounded_levels > 0))
    fail<BadInput>("a bias cannot be added to a part of a sum, or to one that is rounded");
  if (bias) nodes.add_(bias->to(nodes.scalar_type()));
  auto sizes = input.sizes().vec();
  sizes.back() = weight.size(0);
  sizes.insert(sizes.begin(), nodes.size(0));
  nodes = joined(nodes.view(sizes), contraction, input.scalar_type());
  return range.stays_open() ? nodes : finished(nodes, input);
}

Tensor weight_gradient(const Tensor& gradient, const Tensor& input, const ContractedRange& samples) {
  check_dtypes(gradient, input);
  if (gradient.dim() < 2 ||
      !gradient.sizes().slice(0, gradient.dim() - 1).equals(input.sizes().slice(0, input.dim() - 1)))
    fail<BadInput>("a weight's gradient from sizes {} and {}", fmt::join(gradient.sizes(), "x"),
                   fmt::join(input.sizes(), "x"));
  const Tensor left = by_sample(gradient), right = by_sample(input);
  const int64_t here = gradient.size(0);
  const auto contraction =
      Contraction::over_samples(samples.total < 0 ? here : samples.total, samples.first, here, left.size(2));
  const Tensor nodes = empty_nodes(contraction, {left.size(0), right.size(0)}, gradient);
  if (nodes.numel() > 0) multiply(left, right, contraction, nodes);
  return samples.stays_open() ? nodes : finished(nodes, gradient);
}

}  // namespace lockstep::kernels
