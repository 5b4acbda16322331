#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "trainer/job/job.h"

namespace lockstep::trainer {

/// Weights of a model that lie in files, by the names and in the order of rows that checkpoints have
/// (docs/checkpoint.md), whatever the files' format. What cannot be read is a FileError that names the file.
class WeightSource {
 public:
  virtual ~WeightSource() = default;

  /// Of the files: for messages.
  virtual const std::string& path() const = 0;
  /// The model that they belong to, with all its sizes.
  virtual const ModelSection& model() const = 0;
  /// Whose changes of low rank are among the tensors; of rank 0: there are none.
  virtual const LoraSection& lora() const {
    static const LoraSection none;
    return none;
  }
  /// Every tensor and its sizes.
  virtual const std::map<std::string, std::vector<int64_t>>& sizes() const = 0;
  /// Rows `first` to `first + count - 1` as float32 on the CPU: [count, ...]; REQUIRES: there are these rows.
  virtual at::Tensor rows(const std::string& name, int64_t first, int64_t count) const = 0;
};

/// All rows.
inline at::Tensor whole_tensor(const WeightSource& source, const std::string& name) {
  return source.rows(name, 0, source.sizes().at(name)[0]);
}

}  // namespace lockstep::trainer
