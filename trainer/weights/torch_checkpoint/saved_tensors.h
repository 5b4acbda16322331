#pragma once
#include <cstdint>
#include <functional>
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
/// torch/distributed/checkpoint/metadata.py in PyTorch 2.11). What is no tensor is left out; those that are not
/// `wanted` have no parts. FileError that names `path` and the tensor for what is not whole, and for a part that is in
/// no .distcp file of the folder. Time and memory are proportional to the bytes, but for tensors cut in thousands of
/// columns.
std::map<std::string, SavedTensor> saved_tensors(std::string_view bytes, const std::string& path,
                                                 const std::function<bool(const std::string&)>& wanted);

}  // namespace lockstep::trainer
