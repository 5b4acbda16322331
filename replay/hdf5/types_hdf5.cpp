#include "replay/hdf5/types_hdf5.h"

namespace lockstep::replay::hdf5 {
namespace {

Handle cell_type(Cell cell) {
  switch (cell) {
    case Cell::kUint8:
      return Handle(H5Tcopy(H5T_STD_U8LE));
    case Cell::kInt8:
      return Handle(H5Tcopy(H5T_STD_I8LE));
    case Cell::kInt32:
      return Handle(H5Tcopy(H5T_STD_I32LE));
    case Cell::kUint32:
      return Handle(H5Tcopy(H5T_STD_U32LE));
    case Cell::kUint64:
      return Handle(H5Tcopy(H5T_STD_U64LE));
    case Cell::kString48:
      return string_type(kScalarNameSize);
  }
  fail<InternalError>("cell {}", static_cast<int>(cell));
}

}  // namespace

Handle string_type(std::size_t size) {
  Handle type(H5Tcopy(H5T_C_S1));
  const bool made = H5Tset_size(type.get(), size) >= 0 && H5Tset_strpad(type.get(), H5T_STR_NULLTERM) >= 0 &&
                    H5Tset_cset(type.get(), H5T_CSET_UTF8) >= 0;
  LOCKSTEP_CHECK(made, "a string of {} bytes", size);
  return type;
}

Handle row_type(std::span<const Column> columns) {
  Handle type(H5Tcreate(H5T_COMPOUND, row_size(columns)));
  std::size_t offset = 0;
  for (const auto& column : columns) {
    const auto cell = cell_type(column.cell);
    LOCKSTEP_CHECK(H5Tinsert(type.get(), column.name, offset, cell.get()) >= 0, "{}", column.name);
    offset += size_of(column.cell);
  }
  return type;
}

Handle element_type(const Dtype& dtype) {
  if (dtype.kind == ElementKind::kFloat)
    return Handle(H5Tcopy(dtype.size == sizeof(float) ? H5T_IEEE_F32LE : H5T_IEEE_F64LE));
  const bool has_sign = dtype.kind == ElementKind::kSigned;
  switch (dtype.size) {
    case 1:
      return Handle(H5Tcopy(has_sign ? H5T_STD_I8LE : H5T_STD_U8LE));
    case 2:
      return Handle(H5Tcopy(has_sign ? H5T_STD_I16LE : H5T_STD_U16LE));
    case 4:
      return Handle(H5Tcopy(has_sign ? H5T_STD_I32LE : H5T_STD_U32LE));
    default:
      return Handle(H5Tcopy(has_sign ? H5T_STD_I64LE : H5T_STD_U64LE));
  }
}

}  // namespace lockstep::replay::hdf5
