#pragma once
#include <rapidcheck.h>

#include "trainer/pipeline/kinds/schedule_kinds.h"

/// Schedules of every kind, and sizes that each kind has.
namespace lockstep::pipeline {

struct Drawn {
  const ScheduleKind* kind = nullptr;
  PipelineSize size;
  Schedule make() const { return make_schedule(kind->name, size); }
};

inline std::ostream& operator<<(std::ostream& stream, const Drawn& drawn) {
  return stream << drawn.kind->name << " ranks " << drawn.size.ranks << " stages per rank "
                << drawn.size.stages_per_rank << " microbatches " << drawn.size.microbatches;
}

/// Whether the kind has such a schedule, said another way than where it is made.
inline bool exists(const ScheduleKind& kind, const PipelineSize& size) {
  if (kind.name == "DualPipeV" && size.microbatches < 2 * size.ranks) return false;
  if (kind.most_stages <= 2) return size.stages_per_rank == kind.most_stages;
  return size.stages_per_rank == 1 || size.microbatches < 2 * size.ranks ||
         size.microbatches % (size.microbatches / size.ranks) == 0;
}

inline rc::Gen<Drawn> drawn_schedule(int64_t most_ranks = 8, int64_t most_stages = 3, int64_t most_microbatches = 16) {
  std::vector<Drawn> all;
  for (const auto& kind : schedule_kinds())
    for (int64_t ranks = 1; ranks <= most_ranks; ++ranks)
      for (int64_t stages = 1; stages <= most_stages; ++stages)
        for (int64_t microbatches = 1; microbatches <= most_microbatches; ++microbatches)
          if (const PipelineSize size{ranks, stages, microbatches}; exists(kind, size)) all.push_back({&kind, size});
  return rc::gen::elementOf(all);
}

}  // namespace lockstep::pipeline
