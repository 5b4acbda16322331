#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "core/files/random_access_file.h"

namespace lockstep::trainer {

/// The tensor that torch.save wrote to `length` bytes of a file from `offset` on: an archive whose data.pkl is read as
/// data (Pickle) and whose numbers must be all that it says. Their checksum is not looked at: PyTorch may have left it
/// out. FileError that names the file and `name` where it is not of this PyTorch dtype ("float32", "float16" or
/// "bfloat16") and these sizes.
at::Tensor read_stored_tensor(const RandomAccessFile& file, int64_t offset, int64_t length, const std::string& name,
                              const std::string& dtype, const std::vector<int64_t>& sizes);

}  // namespace lockstep::trainer
