#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/files/file_descriptor.h"

namespace lockstep::bench {

/// A process that works when it is told to, as often (contender.py says how it is told), and ends with this object.
class Contender {
 public:
  /// What it does each time, and the number that this gives.
  using Work = std::function<double()>;

  /// A Python program of this folder with one argument. Nothing if there is no Python that has torch: neither
  /// LOCKSTEP_TORCH_PYTHON names one, nor has tools/python_env made one. `threads`: OMP_NUM_THREADS.
  static std::shared_ptr<Contender> python(const std::string& program, const std::string& argument, int threads = 1);

  /// A child of this process, in which `make` runs. REQUIRES: this process has no other thread.
  static std::shared_ptr<Contender> fork(const std::function<Work()>& make);

  /// Works so many times, and returns what that gave when it is done. Throws BadInput if the process has ended.
  std::vector<double> run(int times) const;

  /// The most resident memory that it had so far, in bytes.
  double peak_memory() const;

 private:
  std::vector<double> ask(const std::string& line) const;

  std::string name_, advice_;
  FileDescriptor socket_;
};

}  // namespace lockstep::bench
