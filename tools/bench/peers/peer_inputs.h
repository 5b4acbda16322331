#pragma once
#include <functional>
#include <string>

#include "tools/bench/bench_run.h"

namespace lockstep::bench {

/// What all contenders of `lockstep bench peers` begin with: a model's initial parameters and some batches of tokens,
/// in a safetensors file that ends with this object.
class PeerInputs {
 public:
  /// Written by a process of its own, so that this one has no thread. Throws BadInput if it cannot.
  PeerInputs(const BatchSize& size, const trainer::ModelSection& model);
  PeerInputs(const PeerInputs&) = delete;
  PeerInputs& operator=(const PeerInputs&) = delete;
  ~PeerInputs();

  const std::string& path() const { return path_; }
  const BatchSize& size() const { return size_; }

  /// A run of the job on these batches, one after the other; each call is a step and gives its loss.
  std::function<double()> steps(const trainer::Job& job, trainer::TrainingRun::Options options,
                                double learning_rate) const;

 private:
  std::string path_;
  BatchSize size_;
};

}  // namespace lockstep::bench
