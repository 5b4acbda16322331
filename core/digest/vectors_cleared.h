#pragma once

namespace lockstep {

/// Clears the upper halves of vector registers at the end of its scope: for scopes that call xxHash's long vectors.
/// Debian's build of it returns without, after which some processors run whatever was compiled without AVX ten times
/// slower, until something else clears them.
struct VectorsCleared {
  ~VectorsCleared();
};

}  // namespace lockstep
