#include "runtime/kernels/products/product_oracle.h"
#include "runtime/kernels/self_test/self_test_comparer.h"

namespace lockstep::kernels {
namespace {

// More rows and columns than a tile has, leaves that are short, samples that are not all.
constexpr int64_t kRows = 17, kColumns = 35, kSamples = 2, kElements = 71, kLength = kSamples * kElements;
const Contraction kContraction = Contraction::over_samples(kSamples + 2, 1, kSamples, kElements);

/// Operands `shift` elements past a cache line; columns of the second one are contiguous.
template <class Input>
struct Operands {
  explicit Operands(int64_t shift)
      : a(any_numbers<Input>(kRows * kLength, shift, 1)), b(any_numbers<Input>(kColumns * kLength, shift, 2)) {}

  Factor<Input> left() { return {a.data(), kLength, kElements, 1}; }
  Factor<Input> right() { return {b.data(), 1, kElements * kColumns, kColumns}; }

  ShiftedBuffer<Input> a, b;
};

template <class Input, class T>
void test(SelfTestComparer& comparer, const char* name) {
  const auto nodes = static_cast<int64_t>(nodes_of(kContraction).size());
  std::vector<T> expected(static_cast<std::size_t>(nodes * kRows * kColumns));
  Operands<Input> aligned(0);
  product_oracle<Input, T>(kRows, kColumns, aligned.left(), aligned.right(), kContraction,
                           {expected.data(), kColumns, kRows * kColumns});
  for (const InstructionSet set : available_instruction_sets())
    for (const int64_t shift : {0, 1, 3, 6, 15}) {
      Operands<Input> operands(shift);
      ShiftedBuffer<T> ours(nodes * kRows * kColumns, shift);
      product<Input, T>(kRows, kColumns, operands.left(), operands.right(), kContraction,
                        {ours.data(), kColumns, kRows * kColumns}, {}, set);
      comparer.expect({name, set, shift * static_cast<int64_t>(sizeof(Input))}, ours, expected);
    }
}

}  // namespace

void test_products(SelfTestComparer& comparer) {
  test<float, float>(comparer, "matrix product");
  test<double, double>(comparer, "matrix product in float64");
  test<Bfloat16, float>(comparer, "matrix product of bfloat16");
}

}  // namespace lockstep::kernels
