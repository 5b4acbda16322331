// Fourier transforms: the dimensions that are transformed are whole.
#include <algorithm>

#include "core/error.h"
#include "runtime/planning/rules/built_in_rules.h"
#include "runtime/planning/rules/shardings.h"

namespace lockstep::rules {
namespace {

c10::ScalarType checked_dtype(const Call& call, bool complex) {
  if (c10::multiply_integers(call.operand_sizes[0]) == 0)
    fail<BadInput>("{}: a tensor of sizes {} has no elements", call.op,
                   c10::str(c10::IntArrayRef(call.operand_sizes[0])));
  const auto dtype = call.operand_dtypes[0];
  const bool fits = complex ? c10::isComplexType(dtype) : c10::isFloatingType(dtype);
  if (!fits)
    fail<BadInput>("{}: {} numbers are needed, not {}", call.op, complex ? "complex" : "real", c10::toString(dtype));
  return dtype;
}

size_t last_dim(const Call& call) {
  const auto dims = call.dimensions("dim", call.dims(0));
  if (call.argument("dim").toIntVector().empty()) fail<BadInput>("{}: no dimension is named", call.op);
  return static_cast<size_t>(dims.back());
}

std::vector<ResultShape> complex_to_complex(const Call& call) {
  return {{call.operand_sizes[0], {}, checked_dtype(call, true)}};
}

std::vector<ResultShape> real_to_complex(const Call& call) {
  auto sizes = call.operand_sizes[0];
  auto& size = sizes[last_dim(call)];
  if (call.argument("onesided").toBool()) size = size / 2 + 1;
  return {{sizes, {}, c10::toComplexType(checked_dtype(call, false))}};
}

std::vector<ResultShape> complex_to_real(const Call& call) {
  auto sizes = call.operand_sizes[0];
  auto& size = sizes[last_dim(call)];
  const auto wanted = call.argument("last_dim_size").toInt();
  if (wanted < 1 || (size != wanted && size != wanted / 2 + 1))
    fail<BadInput>("{}: {} elements make no {} real ones", call.op, size, wanted);
  size = wanted;
  return {{sizes, {}, c10::toRealValueType(checked_dtype(call, true))}};
}

constexpr Rule kRows[] = {
    {"_fft_c2c", "transform", "all but dim", "-", Rule::kPlain, all_but_named, complex_to_complex, local_unless_empty},
    {"_fft_c2r", "transform", "all but dim", "-", Rule::kPlain, all_but_named, complex_to_real, local_unless_empty},
    {"_fft_r2c", "transform", "all but dim", "-", Rule::kPlain, all_but_named, real_to_complex, local_unless_empty},
};

}  // namespace

std::span<const Rule> spectra() { return kRows; }

}  // namespace lockstep::rules
