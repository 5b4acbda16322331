#pragma once
#include <ATen/core/Tensor.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "trainer/checkpoint/safetensors.h"

namespace lockstep::trainer {

/// Tensors in the files of a folder as Hugging Face writes them: model.safetensors, or several files and
/// model.safetensors.index.json. Names as there.
class SafetensorsFolder {
 public:
  /// Reads the structure of all files. FileError that names a file for damage, and for an index that names a tensor or
  /// a file which is not there; BadInput where the folder holds neither.
  explicit SafetensorsFolder(const std::string& folder);

  const std::string& path() const { return folder_; }
  bool holds(const std::string& name) const { return places_.contains(name); }
  std::vector<std::string> names() const;
  const std::vector<int64_t>& sizes(const std::string& name) const { return entry(name).shape; }

  /// Rows of a tensor as float32, [count, ...]. BadInput for other types than F32, F16 and BF16. REQUIRES: at least one
  /// dimension, and these rows.
  at::Tensor rows(const std::string& name, int64_t first, int64_t count) const;

 private:
  void open(const std::string& file);
  void require_indexed(const std::string& path, const std::map<std::string, std::string>& index) const;
  const SafetensorsFile::Entry& entry(const std::string& name) const;

  std::string folder_;
  std::map<std::string, SafetensorsFile> files_;
  std::map<std::string, std::string> places_;  ///< the file of each tensor
};

/// Whether the folder holds a file that only such a folder has.
bool is_safetensors_folder(const std::string& folder);

}  // namespace lockstep::trainer
