#include "replay/capture/op_timer.h"

#include "runtime/tensor/mesh.h"

namespace lockstep::replay {

OpTimer::OpTimer(const World& world, std::function<double()> waited) : world_(world), waited_(std::move(waited)) {
  begin();
}

void OpTimer::begin() {
  for (const int rank : world_.local_ranks()) ranks_[rank] = {};
  log_.begin();
}

std::vector<TimedStep> OpTimer::end(int64_t step) {
  log_.end_all();
  std::vector<TimedStep> steps;
  for (const int rank : world_.local_ranks()) {
    auto& mine = ranks_[rank];
    StepRecording recording;
    recording.rank = rank;
    recording.world = world_.rank_count();
    recording.step = step;
    recording.names = log_.names();
    recording.ops = log_.ops();
    recording.collectives = std::move(mine.collectives);
    recording.pieces = std::move(mine.pieces);
    steps.push_back({std::move(recording), std::move(mine.waited)});
  }
  return steps;
}

void OpTimer::before_collective(const CollectiveEvent& event) {
  const auto collectives = log_.begin_collective(event);
  const auto& ranks = event.mesh.local_ranks();
  for (size_t i = 0; i < ranks.size(); ++i) {
    auto& mine = ranks_[ranks[i]];
    mine.collectives.push_back(collectives[i]);
    mine.collectives.back().first_piece = static_cast<uint32_t>(mine.pieces.size());
    mine.waited.push_back(0);
  }
  waited_before_ = waited_ ? waited_() : 0;
}

/// When the first piece is shown all of them are there.
void OpTimer::received(const CollectiveEvent&, int rank, int source, at::Tensor& payload) {
  auto& mine = ranks_[rank];
  auto& collective = mine.collectives.back();
  mine.pieces.push_back({source, 0, payload.nbytes(), kNoPayload, {}});
  ++collective.pieces;
  collective.end = log_.now();
  if (waited_) mine.waited.back() = static_cast<uint64_t>((waited_() - waited_before_) * 1e9);
}

}  // namespace lockstep::replay
