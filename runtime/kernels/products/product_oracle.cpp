#include "runtime/kernels/products/product_oracle.h"

#include <cmath>

#include "core/elementary/portable.h"

namespace lockstep::kernels {
namespace {

float widen(float value) { return value; }
double widen(double value) { return value; }
float widen(Bfloat16 value) { return portable::bits<float>(static_cast<uint32_t>(value.bits) << 16); }

/// The sum of the leaves below a node: leaf(index) is one.
template <class Leaf>
auto sum_below(const SumTree& tree, const SumNode& node, const Leaf& leaf) -> decltype(leaf(int64_t{0})) {
  if (node.height == 0) return leaf(node.index);
  const SumNode left{node.height - 1, node.index * 2}, right{node.height - 1, node.index * 2 + 1};
  const auto sum = sum_below(tree, left, leaf);
  if (elements_of(tree, right).start >= tree.size) return sum;
  return sum + sum_below(tree, right, leaf);
}

template <class Input, class T>
struct Element {
  const Factor<Input>& a;
  const Factor<Input>& b;
  int64_t i, j;
  const Contraction& contraction;
  const SumTree samples = SumTree::over_samples(contraction.all_samples);
  const SumTree elements = SumTree::over_elements(contraction.all_elements);

  T leaf_of(int64_t sample, int64_t leaf) const {
    const auto [start, end] = elements_of(elements, {0, leaf});
    T sum = 0;
    for (int64_t element = start; element < end; ++element) {
      const int64_t s = sample - contraction.first_sample, e = element - contraction.first_element;
      sum = std::fma(widen(a.data[i * a.row_stride + s * a.sample_stride + e * a.element_stride]),
                     widen(b.data[j * b.row_stride + s * b.sample_stride + e * b.element_stride]), sum);
    }
    return sum + T(0);
  }
  T part_of_sample(int64_t sample, const SumNode& node) const {
    return sum_below(elements, node, [&](int64_t leaf) { return leaf_of(sample, leaf); });
  }
  T at(const SumNode& node) const {
    if (contraction.is_empty_sum()) return 0;
    if (contraction.all_samples == 1) return part_of_sample(0, node);
    return sum_below(samples, node, [&](int64_t sample) { return part_of_sample(sample, {elements.height, 0}); });
  }
};

}  // namespace

template <class Input, class T>
void product_oracle(int64_t m, int64_t n, const Factor<Input>& a, const Factor<Input>& b,
                    const Contraction& contraction, const ProductOutput<T>& out) {
  const auto nodes = nodes_of(contraction);
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      const Element<Input, T> element{a, b, i, j, contraction};
      for (std::size_t p = 0; p < nodes.size(); ++p)
        out.data[static_cast<int64_t>(p) * out.node_stride + i * out.row_stride + j] = element.at(nodes[p]);
    }
}

#define LOCKSTEP_INSTANTIATE(Input, T)                                                                           \
  template void product_oracle(int64_t, int64_t, const Factor<Input>&, const Factor<Input>&, const Contraction&, \
                               const ProductOutput<T>&)
LOCKSTEP_INSTANTIATE(float, float);
LOCKSTEP_INSTANTIATE(Bfloat16, float);
LOCKSTEP_INSTANTIATE(double, double);
#undef LOCKSTEP_INSTANTIATE

}  // namespace lockstep::kernels
