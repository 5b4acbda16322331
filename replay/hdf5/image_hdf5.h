#pragma once
#include <cstddef>
#include <span>

#include "replay/hdf5/hdf5.h"

namespace lockstep::replay::hdf5 {

/// Opens a file that is in memory, for reading and without a copy. REQUIRES: the bytes outlive the handle. Returns a
/// handle below 0 if it is no HDF5 file.
Handle open_image(std::span<const std::byte> file);

}  // namespace lockstep::replay::hdf5
