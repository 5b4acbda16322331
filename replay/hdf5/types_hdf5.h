#pragma once
#include <cstddef>
#include <span>

#include "replay/format/columns.h"
#include "replay/format/dtypes.h"
#include "replay/hdf5/hdf5.h"

/// The types of datasets and attributes, as they are in files. REQUIRES: a Session.
namespace lockstep::replay::hdf5 {

/// UTF-8 of `size` bytes, the zero at the end included.
Handle string_type(std::size_t size);

Handle row_type(std::span<const Column> columns);

Handle element_type(const Dtype& dtype);

}  // namespace lockstep::replay::hdf5
