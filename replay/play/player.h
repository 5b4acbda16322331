#pragma once
#include <deque>
#include <map>
#include <optional>

#include "replay/format/recording.h"
#include "runtime/context/observer.h"
#include "runtime/dispatch/op_results.h"
#include "runtime/transport/transport.h"

namespace lockstep::replay {

/// Where a replay first left its recording.
struct Deviation {
  std::string what;      ///< "result 0 differs", "another op", "a collective that was not recorded", ...
  std::string id;        ///< OpId::text(), of the op or of the collective's
  std::string layouts;   ///< of the op's operands and results, as far as there are any
  std::string expected;  ///< in the recording: a digest or an op's name
  std::string found;
  std::string operands;  ///< a line for each: layout, smallest, largest, mean, how many are not finite
  std::string text() const;
};

/// Plays one rank's recorded step: as a transport it hands over what the rank received, as an observer it compares what
/// the rank computes with the digests of what it computed then. Peers, and what is sent to them, do not exist.
///
/// A recording that lacks something is not one that agrees: each op has the results, of the kinds, and each collective
/// the pieces that are recorded, in their order, no fewer and no more. A collective is the recorded one if it also
/// moves the same thing (its purpose) between the same ranks (its group), as the same one of the step (its number). Of
/// an incomplete step's last ops, which were under way, there need be none.
///
/// Throws Inconsistency where the program asks for something that was not recorded, since nothing can follow.
class Player final : public Observer, public Transport {
 public:
  /// What was received goes to the memory of this device.
  explicit Player(c10::DeviceType device = c10::kCPU) : device_(device) {}

  /// The step to be played next. Borrows the recording. `until`: an op (OpId::text() or a part of it) after which it
  /// stops, with StoppedThere, and keeps what the op took and gave; empty: none. REQUIRES: payloads were kept.
  void load(const StepRecording& recording, std::string until = "");

  /// Why it stopped, if `until` came.
  class StoppedThere : public std::exception {};

  void before_op(const OpEvent& event) override;
  void after_op(const OpEvent& event, std::span<const c10::IValue> results) override;
  void before_collective(const CollectiveEvent& event) override;
  void received(const CollectiveEvent& event, int rank, int source, at::Tensor& payload) override;

  void post(Message) override {}
  std::optional<MessageHeader> arrived(int source, int destination) override;
  bool receive(int source, int destination, std::span<const MutableSpan> parts) override;
  [[noreturn]] void progress() override;
  bool delivers_what_is_awaited() const override { return true; }

  /// To be called when the program has ended: by an error, unless `error` is empty. Notes a deviation where the
  /// recorded step went on. Of what comes after the end of an incomplete recording nothing is said.
  void ended(const std::string& error);

  /// Operands before, and results after the op where it stopped, and that op's OpId::text().
  const std::vector<RecordedTensor>& tensors_there() const { return tensors_there_; }
  const std::string& op_there() const { return op_there_; }

  const std::optional<Deviation>& first_deviation() const { return first_; }
  /// How much was compared so far, and how much of it differed.
  size_t ops() const { return next_op_; }
  size_t collectives() const { return next_collective_; }
  size_t results() const { return next_result_; }
  size_t differing_results() const { return differing_; }
  /// Whether nothing but the values of results differed: the same ops, layouts and collectives, to the end.
  bool is_same_program() const { return is_same_program_; }

 private:
  /// Of the op or collective that the recording has next; "" at its end.
  std::string next_text() const;
  bool is_past_end() const { return !recording_->complete && next_text().empty(); }
  const std::string& name(Name name) const { return recording_->names[name]; }
  std::string text_of(const RecordedId& id) const;
  bool is(const RecordedId& recorded, const OpId& id) const;
  bool ends_in(size_t op) const;
  bool is_on(const Mesh& mesh) const;  ///< whether the recorded rank has a part of what lies there
  bool is_next_result(size_t op, size_t index) const;
  void compare_all(const OpEvent& event, std::span<const OpResult> given);
  void compare(const OpEvent& event, const RecordedResult& recorded, const OpResult& result);
  void require_all_received();
  void require_same_kind(const RecordedCollective& recorded, const CollectiveEvent& event);
  void compare_purpose(const RecordedCollective& recorded, const CollectiveEvent& event);
  void take_pieces(const RecordedCollective& recorded, const CollectiveEvent& event);
  bool stops_at(const OpEvent& event) const;
  void deliver(std::span<const std::byte> bytes, MutableSpan part) const;
  void check_delivered(const RecordedPiece& piece, const CollectiveEvent& event);
  void deviate(Deviation deviation);  ///< in something else than a value
  [[noreturn]] void leave(const std::string& what, const std::string& id, const std::string& expected);

  const c10::DeviceType device_;
  const StepRecording* recording_ = nullptr;
  std::string until_;
  std::vector<size_t> running_;  ///< ops that have begun and not ended: an op may run others
  size_t next_op_ = 0, next_result_ = 0, next_collective_ = 0, differing_ = 0;
  std::map<std::string, uint64_t> collectives_on_;  ///< so far, by mesh
  size_t next_piece_ = 0, last_piece_ = 0;          ///< what the collective that runs has still to deliver
  MessageHeader header_;                            ///< of the collective that runs
  std::map<int, Bytes> arrived_;                    ///< its payload, by source
  bool is_same_program_ = true;
  std::optional<Deviation> first_;
  std::vector<RecordedTensor> tensors_there_;
  std::string op_there_;
};

}  // namespace lockstep::replay
