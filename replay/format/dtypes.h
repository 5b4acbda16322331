#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

/// The dtypes that a recording may hold, without LibTorch: numbered as c10::ScalarType.
namespace lockstep::replay {

/// What HDF5 is told an element is; dtypes that it does not have are unsigned integers of their size.
enum class ElementKind : uint8_t { kUnsigned, kSigned, kFloat };

struct Dtype {
  int8_t number = 0;
  std::string_view name;  ///< "float32", as the attribute `dtype` spells it
  std::size_t size = 0;   ///< bytes of an element
  ElementKind kind = ElementKind::kUnsigned;
};

std::span<const Dtype> all_dtypes();

/// nullptr for a number or a name that is none of them.
const Dtype* find_dtype(int8_t number);
const Dtype* find_dtype(std::string_view name);

}  // namespace lockstep::replay
