#pragma once
#include <string>
#include <vector>

#include "replay/format/recording.h"

namespace lockstep::replay {

/// One op on a mesh, with its operands and with what one device gives: enough to run it again alone, anywhere.
struct OpCase {
  std::string id;                       ///< OpId::text() of the op in its run
  std::string op, overload;             ///< "aten::add", "Tensor"
  std::string mesh;                     ///< Mesh::text()
  std::string numerics;                 ///< "canonical" or "native"
  std::string domain;                   ///< "native" or "float64"
  int64_t rounded_levels = 0;           ///< World::Options::rounded_levels
  std::string finding;                  ///< what was wrong
  std::string arguments;                ///< JSON, see FORMAT.md
  std::vector<RecordedTensor> tensors;  ///< "argument.N.rankR", "argument.N" (a plain tensor), "expected.K"
  bool operator==(const OpCase&) const = default;
};

/// The file (FORMAT.md, "A case"). Throws BadInput for more than a file may hold.
Bytes to_file(const OpCase& one);

/// The case in a file, which may come from anybody. Throws FileError that names the file and what is wrong.
OpCase read_case(const std::string& path);

}  // namespace lockstep::replay
