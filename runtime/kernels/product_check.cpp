// The self-test at start: products of this machine against the oracle.
#include <cstring>
#include <type_traits>
#include <vector>

#include "core/error.h"
#include "core/portable.h"
#include "runtime/kernels/canonical_products.h"
#include "runtime/kernels/product_oracle.h"

namespace lockstep::kernels {
namespace {

constexpr int64_t kRows = 19, kColumns = 37, kSamples = 3, kElements = 101;
const Contraction kContraction = Contraction::over_samples(kSamples + 2, 1, kSamples, kElements);

/// Any numbers with signs and many exponents; with `shift`, at another address.
template <class Input>
std::vector<Input> numbers(int64_t count, uint32_t seed) {
  std::vector<Input> values(static_cast<std::size_t>(count));
  for (auto& value : values) {
    seed = seed * 1664525u + 1013904223u;
    const float number = portable::bits<float>((seed & 0x80ffffffu) | 0x38000000u | (seed & 0x7u) << 25);
    if constexpr (std::is_same_v<Input, Bfloat16>) {
      value = {static_cast<uint16_t>(portable::bits<uint32_t>(number) >> 16)};
    } else {
      value = static_cast<Input>(number);
    }
  }
  return values;
}

template <class Input, class T>
bool agrees(InstructionSet set, int64_t shift) {
  const int64_t length = kSamples * kElements;
  const auto a = numbers<Input>(kRows * length + shift, 1), b = numbers<Input>(kColumns * length + shift, 2);
  const Factor<Input> left{a.data() + shift, length, kElements, 1},
      right{b.data() + shift, 1, kElements * kColumns, kColumns};
  const auto nodes = static_cast<int64_t>(nodes_of(kContraction).size());
  std::vector<T> ours(static_cast<std::size_t>(nodes * kRows * kColumns)), expected(ours.size());
  product<Input, T>(kRows, kColumns, left, right, kContraction, {ours.data(), kColumns, kRows * kColumns}, {}, set);
  product_oracle<Input, T>(kRows, kColumns, left, right, kContraction, {expected.data(), kColumns, kRows * kColumns});
  return std::memcmp(ours.data(), expected.data(), ours.size() * sizeof(T)) == 0;
}

}  // namespace

void check_products() {
  for (const InstructionSet set : available_instruction_sets())
    for (const int64_t shift : {0, 1, 3})
      if (!agrees<float, float>(set, shift) || !agrees<double, double>(set, shift) ||
          !agrees<Bfloat16, float>(set, shift))
        fail<Inconsistency>("self-test: matrix products on {} differ from the order that canonical numerics promises",
                            name_of(set));
}

}  // namespace lockstep::kernels
