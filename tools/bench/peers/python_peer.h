#pragma once
#include <memory>
#include <string>

#include "core/files/file_descriptor.h"

namespace lockstep::bench {

/// A Python program of this folder (two_ranks.py says how it is told what to do), as a process of its own.
class PythonPeer {
 public:
  /// `command`: the script and its arguments. Nothing if LOCKSTEP_TORCH_PYTHON names no python3 that has torch.
  static std::shared_ptr<PythonPeer> start(const std::string& command);

  /// Does its work so many times; returns when it is done. Throws BadInput if the program has ended.
  void run(int times) const;

 private:
  FileDescriptor to_, from_;
};

}  // namespace lockstep::bench
