#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "replay/format/recording.h"

/// Where things lie in a step's file: what the reading process finds out with HDF5, and all that it hands over.
/// Datasets are contiguous, so whoever has the file's bytes needs no HDF5 to take them from there.
namespace lockstep::replay {

struct CatalogEntry {
  std::string path;
  std::string dtype;  ///< of a tensor of the state
  uint64_t element_size = 0;
  std::vector<uint64_t> sizes;  ///< none: a scalar
  uint64_t offset = 0;          ///< in the file; 0 if there are no bytes
  bool operator==(const CatalogEntry&) const = default;
};

struct Catalog {
  int64_t rank = 0, world = 1, step = 0, complete = 0, has_state = 0, first_sample = 0, next_sample = 0;
  std::string state_digest;
  std::vector<CatalogEntry> entries;  ///< kDatasets in their order, then the state's by name
  bool operator==(const Catalog&) const = default;
};

/// The catalog as bytes, and back. FileError for anything that is not a catalog: the bytes are not trusted.
std::string encode(const Catalog& catalog);
Catalog decode_catalog(std::string_view text);

/// The recording whose bytes lie in `file` where `catalog` says. Nothing in the catalog is believed: sizes are compared
/// with the file's before anything is allocated, and the result satisfies validate(). Throws FileError or BadInput.
StepRecording assemble(const Catalog& catalog, std::span<const std::byte> file);

}  // namespace lockstep::replay
