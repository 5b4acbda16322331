#pragma once
#include <span>

#include "replay/hdf5/catalog.h"

namespace lockstep::replay {

/// Finds out with HDF5 where things lie in a file that is in memory, and refuses what FORMAT.md refuses. The library is
/// no match for a file made to break it: call this where a crash does no harm (reader_process.h). Throws FileError
/// without a path.
Catalog read_catalog(std::span<const std::byte> file);

}  // namespace lockstep::replay
