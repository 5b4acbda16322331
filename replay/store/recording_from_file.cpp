#include <memory>

#include "core/error.h"
#include "replay/hdf5/catalog_hdf5.h"
#include "replay/hdf5/hdf5.h"
#include "replay/sandbox/reader_process.h"
#include "replay/store/recording_file.h"

namespace lockstep::replay {
namespace {

/// The catalog, made in a process of its own.
Catalog read_catalog_apart(std::span<const std::byte> file) {
  auto process = [&] {
    const hdf5::Session session;  // over the fork: no other thread leaves the library half-way in the child
    return std::make_unique<ReaderProcess>([&] { return encode(read_catalog(file)); }, limits_for(file.size()));
  }();
  return decode_catalog(process->answer());
}

}  // namespace

StepRecording from_file(std::span<const std::byte> file, const std::string& path) {
  try {
    return assemble(read_catalog_apart(file), file);
  } catch (const Error& error) {
    fail<FileError>("{}: {}", path, error.what());
  }
}

}  // namespace lockstep::replay
