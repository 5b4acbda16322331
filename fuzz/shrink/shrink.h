#pragma once
#include "fuzz/shrink/whole_case.h"

namespace lockstep::fuzz {

struct Shrunk {
  replay::OpCase smallest;
  std::string before, after;  ///< describe()
  std::string finding;        ///< what differs in the smallest one
  int64_t tried = 0;
};

/// The smallest case that `seconds` suffice to find of which the op still differs from one device. `rules`: the mesh's.
///
/// A case may come from anybody: all of it is done by a child that has neither files nor sockets, on one thread (as
/// replay::run_case()). BadInput where the case cannot be run, agrees, or differs with its own shards alone.
Shrunk shrink(const replay::OpCase& one, double seconds, const Rules& rules = {});

}  // namespace lockstep::fuzz
