#pragma once
#include <deque>
#include <map>
#include <unordered_map>

#include "replay/capture/step_log.h"
#include "replay/capture/tensor_reader.h"
#include "runtime/context/world.h"
#include "runtime/tensor/spec.h"

namespace lockstep::replay {

/// Watches a step and makes one StepRecording for every rank that lives here. Digests are taken, and payloads copied,
/// by a reader for the device of the World; an op that writes in place waits until it says that nothing is lost.
///
/// Of what is no op or collective (job, batch, scalars, state) it knows nothing: the caller says it.
class Recorder final : public Observer {
 public:
  /// `keeps_payload`: whether what arrives is kept, or its digest alone. REQUIRES: a World that exchanges as messages
  /// do (World::Options::as_messages).
  Recorder(const World& world, bool keeps_payload);

  /// Forgets everything and starts anew.
  void begin();
  /// One recording per local rank of the World, in their order. What is no op or collective is as in `common`.
  std::vector<StepRecording> end(const StepRecording& common);
  /// Memory of a payload that nobody needs any more, for the next one.
  void reuse(Bytes memory);

  void before_op(const OpEvent& event) override;
  void after_op(const OpEvent& event, std::span<const c10::IValue> results) override;
  void before_collective(const CollectiveEvent& event) override;
  void received(const CollectiveEvent& event, int rank, int source, at::Tensor& payload) override;

 private:
  struct KeptPiece {
    Digest digest;
    uint64_t offset = 0;
  };
  /// What differs from rank to rank.
  struct PerRank {
    std::vector<uint32_t> ops;  ///< of the log, those that the rank has a part in
    std::vector<RecordedResult> results;
    std::vector<RecordedCollective> collectives;
    std::vector<RecordedPiece> pieces;
    size_t last_payload = 0;  ///< bytes of the step before: the next one's will be about as many

    // Written by the reader, until it has finished.
    std::deque<Digest> result_digests;  ///< of the results that have one, in their order
    std::deque<KeptPiece> kept_pieces;
    Bytes payload;
    std::map<Digest, uint64_t> kept;  ///< where the payload has these bytes
  };

  void prepare(PerRank& mine);
  void let_go_of(ShardSet& written);
  PerRank& of(int rank) { return ranks_[place_.at(rank)]; }
  Name layout_name(const TensorSpec& spec);
  void add_result(uint32_t op, uint32_t index, const at::Tensor& tensor, ResultKind kind);
  KeptPiece keep(PerRank& mine, const Digest& digest, std::span<const std::byte> bytes) const;
  static void take_over(PerRank& mine);
  void keep_ops(const PerRank& mine, StepRecording& recording) const;

  const World& world_;
  bool keeps_payload_;
  std::map<int, size_t> place_;  ///< of a rank in ranks_
  StepLog log_;
  std::unordered_map<const TensorSpec*, Name> layouts_;
  std::vector<PerRank> ranks_;
  std::vector<Bytes> spare_;
  std::unique_ptr<TensorReader> reader_;
};

}  // namespace lockstep::replay
