#include "replay/recorder.h"

#include <ATen/Functions.h>

#include "runtime/op_results.h"
#include "runtime/plan.h"
#include "runtime/sharded_tensor.h"
#include "runtime/tensor_bytes.h"

namespace lockstep::replay {
namespace {

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

Recorder::Recorder(const World& world, bool keeps_payload) : world_(world), keeps_payload_(keeps_payload) {
  LOCKSTEP_CHECK(world.as_messages());
  for (const int rank : world.local_ranks()) place_.emplace(rank, place_.size());
  begin();
}

void Recorder::begin() {
  ops_.clear();
  running_.clear();
  early_.clear();
  for (auto& mine : ranks_) {
    mine.results.clear();
    mine.collectives.clear();
    mine.pieces.clear();
    mine.kept.clear();
    mine.payload.clear();
    prepare(mine);
  }
  ranks_.resize(place_.size());
  start_ = Clock::now();
}

std::vector<StepRecording> Recorder::end(const StepRecording& common) {
  for (const auto op : running_) ops_[op].end = now();  // a step that failed in the middle of them
  std::vector<StepRecording> recordings;
  for (const int rank : world_.local_ranks()) {
    auto& mine = of(rank);
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

void Recorder::before_op(const OpEvent& event) {
  running_.push_back(static_cast<uint32_t>(ops_.size()));
  ops_.push_back({recorded_id(event.id, names_), now(), 0});
}

void Recorder::after_local(const OpEvent& event, size_t result, size_t local_index, const at::Tensor& shard) {
  if (event.plan.written < 0 && is_alias(event, result)) return;
  early_.push_back({running_.back(), result, local_index, shard.nbytes(), digest(in_one_piece(shard))});
}

void Recorder::after_op(const OpEvent& event, std::span<const c10::IValue> results) {
  const auto given = op_results(event, results);
  for (size_t r = 0; r < given.size(); ++r)
    add_result(running_.back(), static_cast<uint32_t>(r), given[r].tensor, given[r].is_alias);
  while (!early_.empty() && early_.back().op == running_.back()) early_.pop_back();
  ops_[running_.back()].end = now();
  running_.pop_back();
}

/// Taken when the rank had just computed it, if it was.
Recorder::EarlyDigest Recorder::digest_of(uint32_t op, uint32_t index, size_t local_index, const at::Tensor& shard) {
  for (auto early = early_.rbegin(); early != early_.rend() && early->op == op; ++early)
    if (early->result == index && early->local_index == local_index) return *early;
  return {op, index, local_index, shard.nbytes(), digest(in_one_piece(shard))};
}

std::span<const std::byte> Recorder::in_one_piece(const at::Tensor& tensor) {
  if (tensor.is_contiguous()) return bytes_of(tensor);
  copy_.resize(std::max(copy_.size(), tensor.nbytes()));
  at::from_blob(copy_.data(), tensor.sizes(), tensor.options()).copy_(tensor);
  return std::span<const std::byte>(copy_).first(tensor.nbytes());
}

Name Recorder::layout_name(const TensorSpec& spec) {
  const auto found = layouts_.find(&spec);
  if (found != layouts_.end()) return found->second;
  return layouts_[&spec] = names_[spec.text()];
}

void Recorder::add_result(uint32_t op, uint32_t index, const at::Tensor& tensor, bool is_alias) {
  const auto& self = sharded(tensor);
  const Name layout = layout_name(self.spec());
  const auto kind = is_alias                      ? ResultKind::kAlias
                    : self.shards()->is_pending() ? ResultKind::kPending
                                                  : ResultKind::kDigest;
  const auto& ranks = self.spec().layout.mesh().local_ranks();
  for (size_t i = 0; i < ranks.size(); ++i) {
    RecordedResult result{op, index, kind, layout, 0, {}};
    if (kind == ResultKind::kDigest) {
      const auto taken = digest_of(op, index, i, self.shards()->either()[i]);
      result.bytes = taken.bytes;
      result.digest = taken.digest;
    }
    of(ranks[i]).results.push_back(result);
  }
}

void Recorder::before_collective(const CollectiveEvent& event) {
  const auto id = recorded_id(event.id, names_);
  const Name mesh = names_[event.mesh.text()];
  const Name axis = names_[event.mesh.axes()[static_cast<size_t>(event.axis)].name];
  const auto begin = now();
  for (const int rank : event.mesh.local_ranks()) {
    auto& mine = of(rank);
    mine.collectives.push_back({id, mesh, axis, static_cast<uint8_t>(event.kind), static_cast<int8_t>(event.dtype),
                                static_cast<uint32_t>(mine.pieces.size()), 0, begin, begin});
  }
}

void Recorder::received(const CollectiveEvent&, int rank, int source, at::Tensor& payload) {
  auto& mine = of(rank);
  auto& collective = mine.collectives.back();
  uint32_t tensor = 0;
  for (uint32_t p = 0; p < collective.pieces; ++p) tensor += mine.pieces[collective.first_piece + p].source == source;
  const auto bytes = in_one_piece(payload);
  const auto fingerprint = digest(bytes);
  mine.pieces.push_back({source, tensor, bytes.size(), keep(mine, bytes, fingerprint), fingerprint});
  ++collective.pieces;
  collective.end = now();
}

uint64_t Recorder::keep(PerRank& mine, std::span<const std::byte> bytes, const Digest& digest) {
  if (!keeps_payload_) return kNoPayload;
  const auto [place, is_new] = mine.kept.emplace(digest, mine.payload.size());
  if (is_new) mine.payload.insert(mine.payload.end(), bytes.begin(), bytes.end());
  return place->second;
}

}  // namespace lockstep::replay
