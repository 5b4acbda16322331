#include "trainer/dry_run/dry_run.h"

#include <algorithm>
#include <cmath>

#include "runtime/redistribution/sent_bytes.h"
#include "runtime/tensor/sharded_tensor.h"
#include "runtime/transfer/transfer.h"

namespace lockstep::trainer {
namespace {

CollectiveKind kind_of(const Move& move) {
  const auto& from = move.before->layout[move.axis];
  const bool whole = move.after->layout[move.axis].is_replicate();
  if (from.is_shard()) return whole ? CollectiveKind::kAllGather : CollectiveKind::kAllToAll;
  return whole ? CollectiveKind::kAllReduce : CollectiveKind::kReduceScatter;
}

/// What tells a class of ranks apart: the sizes of the state's shards, and bytes sent in whole bytes.
using Signature = std::vector<int64_t>;

class Classes {
 public:
  Classes(TrainingRun& run) : mesh_(run.mesh()), transfers_(run.world().part<TransferCounts>().sent) {
    for (const auto& entry : run.state())
      for (const auto& [prefix, tensor] : entry.tensors())
        ++state_[{&spec_of(tensor), sharded(tensor).shards()->whole()[0].element_size()}];
    run.world().part<MoveCounts>().for_each([&](const Move& move, int64_t count) { moves_.emplace_back(move, count); });
  }

  std::vector<RankClass> find() const {
    std::vector<RankClass> classes;
    std::map<Signature, size_t> known;
    for (const int rank : mesh_.ranks()) {
      RankClass found;
      const auto [entry, is_new] = known.try_emplace(describe(rank, found), classes.size());
      if (is_new) classes.push_back(std::move(found));
      classes[entry->second].ranks.push_back(rank);
    }
    return classes;
  }

 private:
  Signature describe(int rank, RankClass& out) const {
    Signature signature;
    for (const auto& [kind, count] : state_) {
      if (!is_on(kind.first->layout.mesh(), rank)) continue;
      for (int dim = 0; dim < kind.first->dim_count(); ++dim) signature.push_back(length_of(*kind.first, rank, dim));
      out.state_bytes += static_cast<double>(elements_of(*kind.first, rank) * kind.second * count);
    }
    for (const auto& [move, count] : moves_)
      if (const auto& mesh = move.before->layout.mesh(); is_on(mesh, rank))
        out.sent[mesh.axes()[static_cast<size_t>(move.axis)].name][static_cast<size_t>(kind_of(move))] +=
            sent_bytes(move, rank) * static_cast<double>(count);
    for (const auto& [transfer, count] : transfers_)
      if (const auto* spec = transfer.first; is_on(spec->layout.mesh(), rank))
        out.sent[transfer.second][static_cast<size_t>(CollectiveKind::kTransfer)] +=
            static_cast<double>(elements_of(*spec, rank) * count) *
            static_cast<double>(c10::elementSize(storage(*spec)));
    for (const auto& [axis, kinds] : out.sent)
      for (const double bytes : kinds) signature.push_back(std::llround(bytes));
    return signature;
  }

  static bool is_on(const Mesh& mesh, int rank) {
    return std::binary_search(mesh.ranks().begin(), mesh.ranks().end(), rank);
  }

  static int64_t length_of(const TensorSpec& spec, int rank, int dim) {
    return spec.layout.cut(rank, dim, spec.sizes[static_cast<size_t>(dim)]).length;
  }
  static int64_t elements_of(const TensorSpec& spec, int rank) {
    int64_t elements = 1;
    for (int dim = 0; dim < spec.dim_count(); ++dim) elements *= length_of(spec, rank, dim);
    return elements;
  }

  const Mesh& mesh_;
  const decltype(TransferCounts::sent)& transfers_;
  std::map<std::pair<const TensorSpec*, int64_t>, int64_t> state_;  ///< how many tensors of each spec and element size
  std::vector<std::pair<Move, int64_t>> moves_;
};

auto nodes_sent(TrainingRun& run) {
  decltype(DryRun::nodes) sent, elements;
  run.world().part<MoveCounts>().for_each([&](const Move& move, int64_t count) {
    if (!move.before->layout[move.axis].is_partial()) return;
    const auto& axis = move.before->layout.mesh().axes()[static_cast<size_t>(move.axis)].name;
    const auto kind = static_cast<size_t>(kind_of(move));
    const double size = static_cast<double>(count * move.before->element_count());
    sent[axis][kind] += size * move.before->nodes_per_rank;
    elements[axis][kind] += size;
  });
  for (auto& [axis, kinds] : sent)
    for (size_t kind = 0; kind < kCollectiveKinds; ++kind)
      if (elements[axis][kind] > 0) kinds[kind] /= elements[axis][kind];
  return sent;
}

}  // namespace

double RankClass::sent_of(CollectiveKind kind) const {
  double bytes = 0;
  for (const auto& [axis, kinds] : sent) bytes += kinds[static_cast<size_t>(kind)];
  return bytes;
}

DryRun dry_run(const Job& job) { return dry_run(job, {.mesh = mesh_of(job)}); }

DryRun dry_run(const Job& job, TrainingRun::Options options) {
  options.meta = true;
  TrainingRun run(job, std::move(options));
  const auto tokens = static_cast<size_t>(job.training.global_batch_size * job.training.seq_len);
  TokenBatch batch{job.training.global_batch_size, job.training.seq_len, std::vector<int64_t>(tokens),
                   std::vector<int64_t>(tokens)};
  if (job.training.pack_documents) batch.positions.resize(tokens);
  run.world().traffic().clear();
  run.world().part<MoveCounts>().clear();
  run.world().part<TransferCounts>().sent.clear();
  run.step(1, batch, 1e-3);
  return {run.world().traffic(), run.model().parameter_count(), run.model().sizes_text(),
          nodes_sent(run),       Classes(run).find(),           run.pipeline()};
}

}  // namespace lockstep::trainer
