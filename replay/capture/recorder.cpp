#include "replay/capture/recorder.h"

#include <ATen/Functions.h>

#include <algorithm>

#include "replay/capture/op_mesh.h"
#include "replay/capture/result_kind.h"
#include "runtime/planning/plan.h"
#include "runtime/tensor/sharded_tensor.h"

namespace lockstep::replay {
namespace {

/// How much memory may wait to be read, or for copies; then training waits too.
constexpr size_t kMostWaitingBytes = size_t{64} << 20;

}  // namespace

Recorder::Recorder(const World& world, bool keeps_payload)
    : world_(world),
      keeps_payload_(keeps_payload),
      reader_(make_tensor_reader(world.shard_device().type(), kMostWaitingBytes)) {
  LOCKSTEP_CHECK(world.as_messages());
  for (const int rank : world.local_ranks()) place_.emplace(rank, place_.size());
  begin();
}

void Recorder::begin() {
  reader_->finish();
  for (auto& mine : ranks_) {
    mine.ops.clear();
    mine.results.clear();
    mine.collectives.clear();
    mine.pieces.clear();
    mine.result_digests.clear();
    mine.kept_pieces.clear();
    mine.kept.clear();
    mine.payload.clear();
    prepare(mine);
  }
  ranks_.resize(place_.size());
  log_.begin();
}

std::vector<StepRecording> Recorder::end(const StepRecording& common) {
  log_.end_all();
  reader_->finish();
  std::vector<StepRecording> recordings;
  for (const int rank : world_.local_ranks()) {
    auto& mine = of(rank);
    take_over(mine);
    StepRecording recording = common;
    recording.rank = rank;
    recording.world = world_.rank_count();
    recording.names = log_.names();
    recording.results = mine.results;
    keep_ops(mine, recording);
    recording.collectives = mine.collectives;
    recording.pieces = mine.pieces;
    mine.last_payload = mine.payload.size();
    recording.payload = std::exchange(mine.payload, {});
    recordings.push_back(std::move(recording));
  }
  return recordings;
}

/// Numbers of ops are those of the ops that are kept.
void Recorder::keep_ops(const PerRank& mine, StepRecording& recording) const {
  for (const auto op : mine.ops) recording.ops.push_back(log_.ops()[op]);
  for (auto& result : recording.results)
    result.op = static_cast<uint32_t>(std::lower_bound(mine.ops.begin(), mine.ops.end(), result.op) - mine.ops.begin());
}

void Recorder::take_over(PerRank& mine) {
  auto digest = mine.result_digests.begin();
  for (auto& result : mine.results)
    if (result.kind == ResultKind::kDigest) result.digest = *digest++;
  for (size_t p = 0; p < mine.pieces.size(); ++p) {
    mine.pieces[p].digest = mine.kept_pieces[p].digest;
    mine.pieces[p].offset = mine.kept_pieces[p].offset;
  }
}

void Recorder::reuse(Bytes memory) {
  if (spare_.size() < ranks_.size()) spare_.push_back(std::move(memory));
}

void Recorder::prepare(PerRank& mine) {
  if (mine.payload.capacity() == 0 && !spare_.empty()) {
    mine.payload = std::move(spare_.back());
    spare_.pop_back();
    mine.payload.clear();
  }
  mine.payload.reserve(mine.last_payload);
}

/// What is pending holds nothing that was read.
void Recorder::let_go_of(ShardSet& written) {
  if (written.is_pending()) return;
  for (const auto& shard : written.local_tensors()) reader_->before_write(shard);
}

void Recorder::before_op(const OpEvent& event) {
  if (event.plan.written >= 0)
    for (const auto& written : op_results(event, {})) let_go_of(*sharded(written.tensor).shards());
  const auto op = log_.begin_op(event.id);
  for (const auto& [rank, place] : place_)
    if (has_part(event, rank)) ranks_[place].ops.push_back(op);
}

void Recorder::after_op(const OpEvent& event, std::span<const c10::IValue> results) {
  const auto given = op_results(event, results);
  for (size_t r = 0; r < given.size(); ++r)
    add_result(log_.running_op(), static_cast<uint32_t>(r), given[r].tensor, kind_of(event, given[r]));
  log_.end_op();
}

Name Recorder::layout_name(const TensorSpec& spec) {
  const auto found = layouts_.find(&spec);
  if (found != layouts_.end()) return found->second;
  return layouts_[&spec] = log_.name_of(spec.text());
}

void Recorder::add_result(uint32_t op, uint32_t index, const at::Tensor& tensor, ResultKind kind) {
  const auto& self = sharded(tensor);
  const Name layout = layout_name(self.spec());
  const auto& ranks = self.spec().layout.mesh().local_ranks();
  for (size_t i = 0; i < ranks.size(); ++i) {
    auto& mine = of(ranks[i]);
    auto& result = mine.results.emplace_back(RecordedResult{op, index, kind, layout, 0, {}});
    if (kind != ResultKind::kDigest) continue;
    const auto& shard = self.shards()->local_tensors()[i];
    result.bytes = shard.nbytes();
    auto& fingerprint = mine.result_digests.emplace_back();
    reader_->read(shard, TensorReader::Wanted::kDigest,
                  [&fingerprint](const Digest& digest, auto) { fingerprint = digest; });
  }
}

void Recorder::before_collective(const CollectiveEvent& event) {
  const auto collectives = log_.begin_collective(event);
  const auto& ranks = event.mesh.local_ranks();
  for (size_t i = 0; i < ranks.size(); ++i) {
    auto& mine = of(ranks[i]);
    mine.collectives.push_back(collectives[i]);
    mine.collectives.back().first_piece = static_cast<uint32_t>(mine.pieces.size());
  }
}

void Recorder::received(const CollectiveEvent&, int rank, int source, at::Tensor& payload) {
  auto& mine = of(rank);
  auto& collective = mine.collectives.back();
  uint32_t tensor = 0;
  for (uint32_t p = 0; p < collective.pieces; ++p) tensor += mine.pieces[collective.first_piece + p].source == source;
  mine.pieces.push_back({source, tensor, payload.nbytes(), 0, {}});
  auto& kept = mine.kept_pieces.emplace_back();
  const auto wanted = keeps_payload_ ? TensorReader::Wanted::kDigestAndBytes : TensorReader::Wanted::kDigest;
  reader_->read(payload, wanted, [this, &mine, &kept](const Digest& digest, std::span<const std::byte> bytes) {
    kept = keep(mine, digest, bytes);
  });
  ++collective.pieces;
  collective.end = log_.now();
}

Recorder::KeptPiece Recorder::keep(PerRank& mine, const Digest& digest, std::span<const std::byte> bytes) const {
  if (!keeps_payload_) return {digest, kNoPayload};
  const auto [place, is_new] = mine.kept.emplace(digest, mine.payload.size());
  if (is_new) mine.payload.insert(mine.payload.end(), bytes.begin(), bytes.end());
  return {digest, place->second};
}

}  // namespace lockstep::replay
