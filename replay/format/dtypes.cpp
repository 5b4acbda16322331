#include "replay/format/dtypes.h"

#include <algorithm>

namespace lockstep::replay {
namespace {

using enum ElementKind;

constexpr Dtype kDtypes[] = {
    {0, "uint8", 1, kUnsigned},
    {1, "int8", 1, kSigned},
    {2, "int16", 2, kSigned},
    {3, "int32", 4, kSigned},
    {4, "int64", 8, kSigned},
    {5, "float16", 2, kUnsigned},
    {6, "float32", 4, kFloat},
    {7, "float64", 8, kFloat},
    {11, "bool", 1, kUnsigned},
    {15, "bfloat16", 2, kUnsigned},
    {23, "float8_e5m2", 1, kUnsigned},
    {24, "float8_e4m3fn", 1, kUnsigned},
    {25, "float8_e5m2fnuz", 1, kUnsigned},
    {26, "float8_e4m3fnuz", 1, kUnsigned},
    {27, "uint16", 2, kUnsigned},
    {28, "uint32", 4, kUnsigned},
    {29, "uint64", 8, kUnsigned},
};

template <class Same>
const Dtype* find(const Same& same) {
  const auto* found = std::find_if(std::begin(kDtypes), std::end(kDtypes), same);
  return found == std::end(kDtypes) ? nullptr : found;
}

}  // namespace

std::span<const Dtype> all_dtypes() { return kDtypes; }

const Dtype* find_dtype(int8_t number) {
  return find([&](const Dtype& dtype) { return dtype.number == number; });
}

const Dtype* find_dtype(std::string_view name) {
  return find([&](const Dtype& dtype) { return dtype.name == name; });
}

}  // namespace lockstep::replay
