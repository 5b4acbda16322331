#include "replay/capture/recorder.h"

#include <ATen/Functions.h>

#include "replay/capture/result_kind.h"
#include "runtime/planning/plan.h"
#include "runtime/tensor/sharded_tensor.h"

namespace lockstep::replay {
namespace {

/// How much memory may wait to be read, or for copies; then training waits too.
constexpr size_t kMostWaitingBytes = size_t{64} << 20;

RecordedId recorded_id(const OpId& id, NameTable& names) {
  return {static_cast<uint8_t>(id.phase), static_cast<int32_t>(id.microbatch), names[id.module], names[id.op],
          static_cast<uint32_t>(id.occurrence)};
}

}  // namespace

Name NameTable::operator[](std::string_view text) {
  const auto found = numbers_.find(text);
  if (found != numbers_.end()) return found->second;
  names_.emplace_back(text);
  return numbers_.emplace(text, static_cast<Name>(names_.size() - 1)).first->second;
}

Recorder::Recorder(const World& world, bool keeps_payload)
    : world_(world),
      keeps_payload_(keeps_payload),
      reader_(make_tensor_reader(world.shard_device().type(), kMostWaitingBytes)) {
  LOCKSTEP_CHECK(world.as_messages());
  for (const int rank : world.local_ranks()) place_.emplace(rank, place_.size());
  begin();
}

void Recorder::begin() {
  ops_.clear();
  running_.clear();
  collectives_on_.clear();
  reader_->finish();
  for (auto& mine : ranks_) {
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
  start_ = Clock::now();
}

std::vector<StepRecording> Recorder::end(const StepRecording& common) {
  for (const auto op : running_) ops_[op].end = now();  // a step that failed in the middle of them
  reader_->finish();
  std::vector<StepRecording> recordings;
  for (const int rank : world_.local_ranks()) {
    auto& mine = of(rank);
    take_over(mine);
    StepRecording recording = common;
    recording.rank = rank;
    recording.world = world_.rank_count();
    recording.names = names_.names();
    recording.ops = ops_;
    recording.results = mine.results;
    recording.collectives = mine.collectives;
    recording.pieces = mine.pieces;
    mine.last_payload = mine.payload.size();
    recording.payload = std::exchange(mine.payload, {});
    recordings.push_back(std::move(recording));
  }
  return recordings;
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

uint64_t Recorder::now() const {
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start_).count());
}

/// What is pending holds nothing that was read.
void Recorder::let_go_of(ShardSet& written) {
  if (written.is_pending()) return;
  for (const auto& shard : written.local_tensors()) reader_->before_write(shard);
}

void Recorder::before_op(const OpEvent& event) {
  if (event.plan.written >= 0)
    for (const auto& written : op_results(event, {})) let_go_of(*sharded(written.tensor).shards());
  running_.push_back(static_cast<uint32_t>(ops_.size()));
  ops_.push_back({recorded_id(event.id, names_), now(), 0});
}

void Recorder::after_op(const OpEvent& event, std::span<const c10::IValue> results) {
  const auto given = op_results(event, results);
  for (size_t r = 0; r < given.size(); ++r)
    add_result(running_.back(), static_cast<uint32_t>(r), given[r].tensor, kind_of(given[r]));
  ops_[running_.back()].end = now();
  running_.pop_back();
}

Name Recorder::layout_name(const TensorSpec& spec) {
  const auto found = layouts_.find(&spec);
  if (found != layouts_.end()) return found->second;
  return layouts_[&spec] = names_[spec.text()];
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

/// Its number in the run is another one after a resume, and where observers gather; what the step counts is not.
void Recorder::before_collective(const CollectiveEvent& event) {
  const auto id = recorded_id(event.id, names_);
  const Name mesh = names_[event.mesh.text()];
  const Name axis = names_[event.mesh.axes()[static_cast<size_t>(event.axis)].name];
  const auto number = collectives_on_[mesh]++;
  const auto begin = now();
  const auto& ranks = event.mesh.local_ranks();
  for (size_t i = 0; i < ranks.size(); ++i) {
    auto& mine = of(ranks[i]);
    mine.collectives.push_back({id, number, mesh, axis, static_cast<uint8_t>(event.kind),
                                static_cast<int8_t>(event.dtype), event.purpose, event.groups[i],
                                static_cast<uint32_t>(mine.pieces.size()), 0, begin, begin});
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
  collective.end = now();
}

Recorder::KeptPiece Recorder::keep(PerRank& mine, const Digest& digest, std::span<const std::byte> bytes) const {
  if (!keeps_payload_) return {digest, kNoPayload};
  const auto [place, is_new] = mine.kept.emplace(digest, mine.payload.size());
  if (is_new) mine.payload.insert(mine.payload.end(), bytes.begin(), bytes.end());
  return {digest, place->second};
}

}  // namespace lockstep::replay
