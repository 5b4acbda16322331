#include "replay/op_case/case_values.h"

#include <ATen/core/jit_type.h>
#include <c10/core/Layout.h>
#include <c10/core/MemoryFormat.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>

#include "core/error.h"
#include "replay/format/dtypes.h"

namespace lockstep::replay {
namespace {

constexpr int64_t kMaxElements = int64_t{1} << 40;

/// What the schema says that the argument's integer stands for: dispatch knows it as an int.
c10::TypeKind kind_of(const c10::Argument& argument) {
  const auto* optional = argument.real_type()->castRaw<c10::OptionalType>();
  return optional ? optional->getElementType()->kind() : argument.real_type()->kind();
}

void require_one_of(int64_t number, int64_t count, const char* what, const std::string& where) {
  if (number < 0 || number >= count)
    fail<BadInput>("{} of the case is {} {}; expected 0 to {}", where, what, number, count - 1);
}

}  // namespace

c10::ScalarType dtype_of(int64_t number, const std::string& what) {
  const bool fits = number >= 0 && number <= std::numeric_limits<int8_t>::max();
  if (!fits || !find_dtype(static_cast<int8_t>(number)))
    fail<BadInput>("{} of the case has dtype {}, which a case cannot hold", what, number);
  return static_cast<c10::ScalarType>(number);
}

void require_sizes(std::span<const int64_t> sizes, const std::string& what) {
  int64_t count = 1;
  for (const auto size : sizes)
    if (size < 0 || __builtin_mul_overflow(count, std::max<int64_t>(size, 1), &count) || count > kMaxElements)
      fail<BadInput>("{} of the case has sizes [{}]; expected none below 0 and at most 2^40 elements", what,
                     fmt::join(sizes, ", "));
}

void require_enumerations(const c10::FunctionSchema& schema, std::span<const c10::IValue> arguments) {
  for (size_t a = 0; a < arguments.size(); ++a) {
    if (!arguments[a].isInt()) continue;
    const auto& argument = schema.arguments()[a];
    const auto number = arguments[a].toInt();
    const auto kind = kind_of(argument);
    const auto where = fmt::format("{} of {}", argument.name(), schema.name());
    if (kind == c10::TypeKind::ScalarTypeType) dtype_of(number, where);
    if (kind == c10::TypeKind::LayoutType) require_one_of(number, 1, "layout", where);  // strided
    if (kind == c10::TypeKind::MemoryFormatType)
      require_one_of(number, static_cast<int64_t>(c10::MemoryFormat::NumOptions), "memory format", where);
  }
}

}  // namespace lockstep::replay
