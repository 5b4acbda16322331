#pragma once
#include <string>

#include "core/files/random_access_file.h"

namespace lockstep::trainer {

/// Opens a dataset's file. Throws BadInput that names it.
RandomAccessFile open_dataset(const std::string& path);

/// A digest of a data file that costs little however long the file is: of its length and of 64 blocks of 1 MiB spread
/// evenly over it, the first and the last included; of a shorter file, of all of it. 32 hexadecimal digits. Throws as
/// open_dataset(), and FileError for what cannot be read.
std::string data_digest(const std::string& path);

}  // namespace lockstep::trainer
