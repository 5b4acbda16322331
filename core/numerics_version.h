#pragma once
#include <cstdint>
#include <optional>
#include <string>

namespace lockstep {

/// Which bits canonical numerics gives (docs/numerics.md). Builds with the same number give the same bits for the same
/// job, data and state. So it grows with every change after which any canonical bit may be another: of a sum, a kernel,
/// an elementary function, the optimizer, a random draw, or of the order of a step. The tests compare the bits of all
/// of these with those in tests/golden/ and say when it has to grow; `make golden` writes the new ones.
///
/// Recordings and checkpoints keep the number of the build that made them; `lockstep doctor` prints it.
inline constexpr int64_t kNumericsVersion = 5;

/// Readers of files refuse larger ones.
inline constexpr int64_t kMostNumericsVersion = 999'999;

/// "numerics version 1"; of nothing, which files say that are older than the number: "a numerics version that is not
/// known".
std::string numerics_version_text(std::optional<int64_t> version = kNumericsVersion);

}  // namespace lockstep
