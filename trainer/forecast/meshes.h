#pragma once
#include <optional>
#include <string>
#include <vector>

#include "trainer/forecast/hardware.h"
#include "trainer/forecast/memory.h"
#include "trainer/forecast/step_time.h"
#include "trainer/forecast/workload.h"

namespace lockstep::trainer::forecast {

/// A mesh with the settings that are fastest on it of those that fit.
struct MeshForecast {
  Settings settings;
  MemoryForecast memory;  ///< of settings; of a mesh on which nothing fits those that need least
  TimeForecast time;      ///< of the same
  double mfu = 0;
  bool fits = false;
  std::string why = {};  ///< it does not fit, or cannot be; empty: it fits

  /// Nothing is forecast: the mesh cannot be.
  bool is_refused() const { return memory.peak <= 0; }
};

/// What of a rank's memory is left to a program's own: contexts, communicators, holes.
inline constexpr double kUsableMemory = 0.94;

/// What of settings is given; what is not, is chosen.
struct Choice {
  std::optional<int64_t> local_batch;
  std::optional<Recompute> recompute;
  std::optional<int64_t> stages_per_rank;
  int64_t element_bytes = 2;  ///< of what is computed in; not chosen
};

/// The mesh on this workload. A mesh that cannot be, or whose memory does not suffice whatever is recomputed, says why.
MeshForecast forecast_of(const Workload& workload, const MeshDegrees& mesh, const Hardware& hardware,
                         const Choice& choice);

/// Of all meshes of so many ranks whose degrees divide them: those that fit, fastest first, then the others.
std::vector<MeshForecast> all_meshes(const Workload& workload, int64_t ranks, const Hardware& hardware,
                                     const Choice& choice);

}  // namespace lockstep::trainer::forecast
