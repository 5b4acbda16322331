#include "replay/hdf5/image_hdf5.h"

// The library wants to copy an image into the property list, and from there into the file. These callbacks hand out the
// one buffer each time, whose address is what they are given as `data`.
namespace lockstep::replay::hdf5 {
namespace {

void* same_buffer(size_t, H5FD_file_image_op_t, void* data) { return data; }
void* copied_already(void* to, const void*, size_t, H5FD_file_image_op_t, void*) { return to; }
void* no_other_size(void*, size_t, H5FD_file_image_op_t, void*) { return nullptr; }
herr_t not_freed(void*, H5FD_file_image_op_t, void*) { return 0; }
void* same_data(void* data) { return data; }
herr_t data_not_freed(void*) { return 0; }

}  // namespace

Handle open_image(std::span<const std::byte> file) {
  constexpr std::size_t kIncrement = 4096;             // nothing grows
  auto* buffer = const_cast<std::byte*>(file.data());  // the library has no const, and does not write
  H5FD_file_image_callbacks_t callbacks{same_buffer, copied_already, no_other_size, not_freed,
                                        same_data,   data_not_freed, buffer};
  const Handle access(H5Pcreate(H5P_FILE_ACCESS));
  const bool set = H5Pset_fapl_core(access.get(), kIncrement, /*backing_store=*/false) >= 0 &&
                   H5Pset_file_image_callbacks(access.get(), &callbacks) >= 0 &&
                   H5Pset_file_image(access.get(), buffer, file.size()) >= 0;
  LOCKSTEP_CHECK(set, "a file of {} bytes in memory", file.size());
  // An absolute name: for others it asks for the working directory.
  return Handle(H5Fopen("/recording", H5F_ACC_RDONLY, access.get()));
}

}  // namespace lockstep::replay::hdf5
