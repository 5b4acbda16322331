#include "core/error.h"
#include "replay/catalog_hdf5.h"
#include "replay/hdf5.h"
#include "replay/recording_file.h"

namespace lockstep::replay {

StepRecording from_file(std::span<const std::byte> file, const std::string& path) {
  try {
    const hdf5::Session session;
    return assemble(read_catalog(file), file);
  } catch (const Error& error) {
    fail<FileError>("{}: {}", path, error.what());
  }
}

}  // namespace lockstep::replay
