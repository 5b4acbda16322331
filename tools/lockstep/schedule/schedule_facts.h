#pragma once
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "trainer/pipeline/held_activations.h"
#include "trainer/pipeline/timeline.h"

namespace lockstep::tool {

/// What is told of a schedule.
struct ScheduleFacts {
  pipeline::Schedule schedule;
  pipeline::Durations durations;
  pipeline::Timeline timeline;
  pipeline::HeldActivations held;
  int64_t left_out = 0;  ///< cells of its file

  int64_t ranks() const { return static_cast<int64_t>(schedule.ranks.size()); }
  /// "GPipe: 4 ranks, 4 stages, 8 microbatches".
  std::string title() const;
  /// Stages of a rank, "0 7".
  std::string stages_text(int64_t rank) const;
};

/// BadInput for a schedule that cannot be carried out.
ScheduleFacts facts_of(pipeline::Schedule schedule, const pipeline::Durations& durations);

/// "F 1, B 2, I 1, W 1, transfer 0".
std::string times_text(const pipeline::Durations& durations);

/// "27.3 %".
std::string share_text(double share);

/// A line for each rank, and one for all.
std::string rank_table(const ScheduleFacts& facts);

nlohmann::ordered_json json_of(const ScheduleFacts& facts);

/// A page with facts, table and drawing.
std::string schedule_page(const ScheduleFacts& facts);

}  // namespace lockstep::tool
