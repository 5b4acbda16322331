#include "replay/play/player.h"

#include <ATen/Functions.h>

#include <algorithm>

#include "core/digest/tensor_digest.h"
#include "core/error.h"
#include "replay/capture/op_mesh.h"
#include "replay/capture/result_kind.h"
#include "replay/play/op_dump.h"
#include "replay/play/operand_statistics.h"
#include "replay/view/trace_diff.h"
#include "runtime/plain/tensor_bytes.h"
#include "runtime/planning/plan.h"
#include "runtime/tensor/sharded_tensor.h"

namespace lockstep::replay {

std::string Deviation::text() const {
  auto text = fmt::format("  op        {}\n  what      {}\n", id, what);
  if (!layouts.empty()) text += fmt::format("  layouts   {}\n", layouts);
  text += fmt::format("  recorded  {}\n  now       {}", expected, found);
  if (!operands.empty()) text += fmt::format("\n  operands\n{}", operands);
  return text;
}

void Player::load(const StepRecording& recording, std::string until) {
  recording_ = &recording;
  until_ = std::move(until);
  running_.clear();
  next_op_ = next_result_ = next_collective_ = differing_ = next_piece_ = last_piece_ = 0;
  collectives_on_.clear();
  is_same_program_ = true;
  first_.reset();
  tensors_there_.clear();
  op_there_.clear();
}

std::string Player::text_of(const RecordedId& id) const {
  return fmt::format("step {}, {}", recording_->step, replay::text_of(id, *recording_));
}

bool Player::is(const RecordedId& recorded, const OpId& id) const {
  return recorded.phase == static_cast<uint8_t>(id.phase) && recorded.microbatch == id.microbatch &&
         recorded.occurrence == id.occurrence && name(recorded.op) == id.op && name(recorded.module) == id.module;
}

void Player::deviate(Deviation deviation) {
  is_same_program_ = false;
  if (!first_) first_ = std::move(deviation);
}

std::string Player::next_text() const {
  if (next_op_ < recording_->ops.size()) return text_of(recording_->ops[next_op_].id);
  if (next_collective_ == recording_->collectives.size()) return "";
  return text_of(recording_->collectives[next_collective_].id) + " (a collective)";
}

void Player::ended(const std::string& error) {
  if (error.empty()) require_all_received();
  auto next = next_text();
  if (next.empty() && (error.empty() || !recording_->complete)) return;
  if (next.empty()) next = "the end of the step";
  deviate({"the step ended before its recording does", next, "", next, error.empty() ? "the end" : error, ""});
}

void Player::leave(const std::string& what, const std::string& id, const std::string& expected) {
  deviate({what, id, "", expected, id, ""});
  fail<Inconsistency>("the replay of step {} of rank {} left its recording: {} {}, recorded: {}", recording_->step,
                      recording_->rank, what, id, expected);
}

void Player::before_op(const OpEvent& event) {
  if (!has_part(event, recording_->rank)) return;
  if (is_past_end()) return running_.push_back(recording_->ops.size());
  if (next_op_ == recording_->ops.size()) leave("an op after the last one", event.id.text(), "the end");
  const auto& recorded = recording_->ops[next_op_].id;
  if (!is(recorded, event.id)) leave("another op", event.id.text(), text_of(recorded));
  running_.push_back(next_op_++);
  if (stops_at(event)) tensors_there_ = operands_of(event, recording_->rank);
}

bool Player::stops_at(const OpEvent& event) const {
  return !until_.empty() && event.id.text().find(until_) != std::string::npos;
}

void Player::after_op(const OpEvent& event, std::span<const c10::IValue> results) {
  if (!has_part(event, recording_->rank)) return;
  compare_all(event, op_results(event, results));
  running_.pop_back();
  if (!stops_at(event)) return;
  for (auto& tensor : results_of(event, results, recording_->rank)) tensors_there_.push_back(std::move(tensor));
  op_there_ = event.id.text();
  throw StoppedThere();
}

/// Whether the recorded step ended while this op was under way: no other one began after it but such as it ran itself.
bool Player::ends_in(size_t op) const {
  const bool is_last = next_op_ == recording_->ops.size() && next_result_ == recording_->results.size();
  return op == recording_->ops.size() || (!recording_->complete && is_last);
}

bool Player::is_on(const Mesh& mesh) const {
  const auto& here = mesh.local_ranks();
  return std::find(here.begin(), here.end(), recording_->rank) != here.end();
}

bool Player::is_next_result(size_t op, size_t index) const {
  return next_result_ < recording_->results.size() && recording_->results[next_result_].op == op &&
         recording_->results[next_result_].index == index;
}

void Player::compare_all(const OpEvent& event, std::span<const OpResult> given) {
  const auto op = running_.back();
  if (ends_in(op)) return;
  if (!given.empty() && !is_on(layout_of(given[0].tensor).mesh())) given = {};
  size_t index = 0;
  for (; index < given.size() && is_next_result(op, index); ++index)
    compare(event, recording_->results[next_result_++], given[index]);
  size_t more = 0;
  for (; next_result_ < recording_->results.size() && recording_->results[next_result_].op == op; ++more)
    ++next_result_;
  if (index == given.size() && more == 0) return;
  ++differing_;
  deviate({"the op has other results than are recorded", event.id.text(), layouts_of(event.plan),
           fmt::format("{} results from number 0 on, {} others", index, more), fmt::format("{} results", given.size()),
           ""});
}

void Player::compare(const OpEvent& event, const RecordedResult& recorded, const OpResult& result) {
  static constexpr const char* kKinds[] = {"", " (an alias)", " (pending)", " (unwritten)"};
  auto& self = sharded(result.tensor);
  const auto layout = self.spec().text();
  const auto kind = kind_of(event, result);
  const int here = self.spec().layout.mesh().local_index(recording_->rank);
  Digest found;
  uint64_t bytes = 0;
  if (kind == ResultKind::kDigest) {
    const auto tensor = self.shards()->local_tensors()[static_cast<size_t>(here)].contiguous().cpu();
    found = tensor_digest(bytes_of(tensor));
    bytes = tensor.nbytes();
  }
  // Older recordings have digests of what was unwritten.
  const bool is_unread = kind == ResultKind::kUnwritten;
  const bool is_alike =
      layout == name(recorded.layout) && (is_unread || (kind == recorded.kind && bytes == recorded.bytes));
  is_same_program_ &= is_alike;
  if (is_alike && (is_unread || found == recorded.digest)) return;
  ++differing_;
  if (first_) return;
  first_ = Deviation{
      fmt::format("result {} differs; everything before it is as recorded", recorded.index),
      event.id.text(),
      layouts_of(event.plan),
      fmt::format("{} {}{}", name(recorded.layout), recorded.digest.text(), kKinds[static_cast<size_t>(recorded.kind)]),
      fmt::format("{} {}{}", layout, found.text(), kKinds[static_cast<size_t>(kind)]),
      operand_statistics(event, static_cast<size_t>(here))};
}

void Player::before_collective(const CollectiveEvent& event) {
  const auto& all = recording_->collectives;
  if (!is_on(event.mesh)) return;
  require_all_received();
  arrived_.clear();
  if (is_past_end()) return;
  if (next_collective_ == all.size()) leave("a collective after the last one, in", event.id.text(), "the end");
  const auto& recorded = all[next_collective_++];
  require_same_kind(recorded, event);
  compare_purpose(recorded, event);
  take_pieces(recorded, event);
}

void Player::require_same_kind(const RecordedCollective& recorded, const CollectiveEvent& event) {
  const auto& axis = event.mesh.axes()[static_cast<size_t>(event.axis)].name;
  if (is(recorded.id, event.id) && recorded.kind == static_cast<uint8_t>(event.kind) && name(recorded.axis) == axis &&
      name(recorded.mesh) == event.mesh.text() && recorded.dtype == static_cast<int8_t>(event.dtype))
    return;
  leave(fmt::format("another collective, {} {} on {} of {}, in", to_text(event.kind), c10::toString(event.dtype), axis,
                    event.mesh.text()),
        event.id.text(),
        fmt::format("{} {} on {} of {} in {}", to_text(static_cast<CollectiveKind>(recorded.kind)),
                    c10::toString(static_cast<c10::ScalarType>(recorded.dtype)), name(recorded.axis),
                    name(recorded.mesh), text_of(recorded.id)));
}

/// What tells apart two that are else alike. The replay goes on: what was received may fit all the same.
void Player::compare_purpose(const RecordedCollective& recorded, const CollectiveEvent& event) {
  const auto compare = [&](const char* what, const std::string& then, const std::string& now) {
    if (then == now) return;
    deviate({fmt::format("{} on {} of {} has another {}", to_text(event.kind),
                         event.mesh.axes()[static_cast<size_t>(event.axis)].name, event.mesh.text(), what),
             event.id.text(), "", fmt::format("{} {}", what, then), fmt::format("{} {}", what, now), ""});
  };
  const auto here = static_cast<size_t>(event.mesh.local_index(recording_->rank));
  compare("number", std::to_string(recorded.number), std::to_string(collectives_on_[event.mesh.text()]++));
  compare("purpose", fmt::format("{:08x}", recorded.purpose), fmt::format("{:08x}", event.purpose));
  compare("group", fmt::format("{:016x}", recorded.group), fmt::format("{:016x}", event.groups[here]));
}

void Player::take_pieces(const RecordedCollective& recorded, const CollectiveEvent& event) {
  const auto here = static_cast<size_t>(event.mesh.local_index(recording_->rank));
  header_ = {event.number, event.purpose, recorded.kind, recorded.dtype, event.groups[here], 0};
  next_piece_ = recorded.first_piece;
  last_piece_ = next_piece_ + recorded.pieces;
  for (auto p = next_piece_; p < last_piece_; ++p) {
    const auto& piece = recording_->pieces[p];
    auto& bytes = arrived_[piece.source];
    check_delivered(piece, event);
    const auto* from = recording_->payload.data() + piece.offset;
    bytes.insert(bytes.end(), from, from + piece.bytes);
  }
}

void Player::received(const CollectiveEvent& event, int rank, int source, at::Tensor& payload) {
  if (rank != recording_->rank || (next_piece_ == last_piece_ && is_past_end())) return;
  const auto& axis = event.mesh.axes()[static_cast<size_t>(event.axis)].name;
  if (next_piece_ == last_piece_)
    return deviate({fmt::format("rank {} sends more in {} on {} than is recorded", source, to_text(event.kind), axis),
                    event.id.text(), "", "nothing", fmt::format("{} bytes", payload.nbytes()), ""});
  const auto& piece = recording_->pieces[next_piece_++];
  const auto tensor = payload.contiguous().cpu();
  const auto found = tensor_digest(bytes_of(tensor));
  if (piece.source == source && piece.bytes == tensor.nbytes() && piece.digest == found) return;
  ++differing_;
  deviate({fmt::format("what arrives in {} on {} is not what is recorded", to_text(event.kind), axis), event.id.text(),
           "", fmt::format("{} bytes from rank {}, {}", piece.bytes, piece.source, piece.digest.text()),
           fmt::format("{} bytes from rank {}, {}", tensor.nbytes(), source, found.text()), ""});
}

void Player::require_all_received() {
  if (next_piece_ == last_piece_) return;
  const auto& collective = recording_->collectives[next_collective_ - 1];
  deviate({fmt::format("{} pieces are recorded that do not arrive", last_piece_ - next_piece_), text_of(collective.id),
           "", fmt::format("{} pieces", collective.pieces), "the end of the collective", ""});
  next_piece_ = last_piece_;
}

/// The file's bytes may be whole and the payload still not what arrived: who changed it also changed the file's digest.
void Player::check_delivered(const RecordedPiece& piece, const CollectiveEvent& event) {
  LOCKSTEP_CHECK(piece.offset != kNoPayload);
  const auto found = tensor_digest(std::span(recording_->payload).subspan(piece.offset, piece.bytes));
  if (found == piece.digest) return;
  ++differing_;
  deviate({fmt::format("what rank {} sent in {} on {} was not delivered as it is here: the recording is damaged",
                       piece.source, to_text(event.kind), event.mesh.axes()[static_cast<size_t>(event.axis)].name),
           event.id.text(), "", piece.digest.text(), found.text(), ""});
}

std::optional<MessageHeader> Player::arrived(int source, int) {
  const auto found = arrived_.find(source);
  if (found == arrived_.end()) return std::nullopt;
  auto header = header_;
  header.bytes = found->second.size();
  return header;
}

/// Through LibTorch, which knows how to reach a device's memory.
void Player::deliver(std::span<const std::byte> bytes, MutableSpan part) const {
  if (part.empty()) return;
  const auto size = static_cast<int64_t>(part.size());
  at::from_blob(part.data(), {size}, at::dtype(c10::kByte).device(device_))
      .copy_(at::from_blob(const_cast<std::byte*>(bytes.data()), {size}, c10::kByte));
}

bool Player::receive(int source, int, std::span<const MutableSpan> parts) {
  const auto message = arrived_.extract(source);
  std::span<const std::byte> rest = message.mapped();
  for (const auto& part : parts) {
    LOCKSTEP_CHECK(part.size() <= rest.size(), "{} of {} bytes", part.size(), rest.size());
    deliver(rest.first(part.size()), part);
    rest = rest.subspan(part.size());
  }
  return true;
}

void Player::progress() {
  fail<Inconsistency>("the replay of step {} of rank {} waits for bytes that were not recorded", recording_->step,
                      recording_->rank);
}

}  // namespace lockstep::replay
