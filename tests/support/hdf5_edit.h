#pragma once
#include <functional>
#include <string>
#include <vector>

#include "replay/format/recording.h"
#include "replay/hdf5/hdf5.h"

/// Changes to a recording's file that HDF5 finds right and a reader of recordings has to refuse.
namespace lockstep::testing {

using replay::hdf5::Handle;

/// The file after `edit`, which gets the open file.
inline replay::Bytes edited(replay::Bytes bytes, const std::function<void(hid_t)>& edit) {
  const Handle access(H5Pcreate(H5P_FILE_ACCESS));
  H5Pset_fapl_core(access.get(), 4096, /*backing_store=*/false);
  H5Pset_file_image(access.get(), bytes.data(), bytes.size());
  const Handle file(H5Fopen("/edited", H5F_ACC_RDWR, access.get()));
  LOCKSTEP_CHECK(file.get() >= 0);
  edit(file.get());
  H5Fflush(file.get(), H5F_SCOPE_GLOBAL);
  bytes.resize(static_cast<std::size_t>(H5Fget_file_image(file.get(), nullptr, 0)));
  H5Fget_file_image(file.get(), bytes.data(), bytes.size());
  return bytes;
}

/// Makes a dataset anew, with other options or another type or size.
inline void replace(hid_t file, const char* path, hid_t type, const std::vector<hsize_t>& sizes,
                    const std::function<void(hid_t)>& set_options = {}) {
  if (H5Lexists(file, path, H5P_DEFAULT) > 0) H5Ldelete(file, path, H5P_DEFAULT);
  const Handle options(H5Pcreate(H5P_DATASET_CREATE));
  H5Pset_layout(options.get(), H5D_CONTIGUOUS);
  H5Pset_alloc_time(options.get(), H5D_ALLOC_TIME_EARLY);
  if (set_options) set_options(options.get());
  const Handle space(H5Screate_simple(static_cast<int>(sizes.size()), sizes.data(), nullptr));
  const Handle dataset(H5Dcreate2(file, path, type, space.get(), H5P_DEFAULT, options.get(), H5P_DEFAULT));
  LOCKSTEP_CHECK(dataset.get() >= 0, "{}", path);
}

inline void set_number(hid_t object, const char* name, int64_t value) {
  if (H5Aexists(object, name) > 0) H5Adelete(object, name);
  const Handle space(H5Screate(H5S_SCALAR));
  const Handle attribute(H5Acreate2(object, name, H5T_STD_I64LE, space.get(), H5P_DEFAULT, H5P_DEFAULT));
  LOCKSTEP_CHECK(H5Awrite(attribute.get(), H5T_NATIVE_INT64, &value) >= 0);
}

}  // namespace lockstep::testing
