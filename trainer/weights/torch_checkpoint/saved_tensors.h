#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/box.h"

namespace lockstep::trainer {

/// A part of a tensor in a file beside .metadata: `length` bytes from `offset`, which torch.save wrote.
struct SavedPart {
  Box box;
  std::string file;
  int64_t offset = 0, length = 0;
};

struct SavedTensor {
  std::string dtype;  ///< PyTorch's name: "float32"
  std::vector<int64_t> sizes;
  std::vector<SavedPart> parts;  ///< which are the whole tensor, each element once
};

/// The tensors of a checkpoint that torch.distributed.checkpoint saved, of its .metadata's bytes (the class Metadata of
/// torch/distributed/checkpoint/metadata.py in PyTorch 2.11). What is no tensor is left out. FileError that names
/// `path` and the tensor for what is not whole, and for a file outside the folder.
std::map<std::string, SavedTensor> saved_tensors(std::string_view bytes, const std::string& path);

}  // namespace lockstep::trainer
