#pragma once
#include "trainer/optim/parameter_state.h"
#include "trainer/weights/weight_source.h"

namespace lockstep::trainer {

enum class LoadedWeights {
  kModel,        ///< those of the model; changes of low rank (models/low_rank.h) are left alone
  kAndAdapters,  ///< the changes, too
};

/// BadInput that says in what, where a source's weights are those of another model.
void require_same_model(const WeightSource& source, const ModelSection& model);

/// Loads parameters, on any mesh, and leaves optimizer state alone: every rank reads the rows that it holds. BadInput,
/// naming the first, where the weights are those of another model than the job's, or the state has other tensors; the
/// source may be without all of the state's changes of low rank, but not with others than the job's [lora]. Only
/// files and memory of this process are touched; shards must have arrived (ShardSet::whole()).
LoadedWeights load_weights(const WeightSource& source, const Job& job, TrainingState& state);

/// The same, of a folder (open_weights()) that may be damaged for one process alone: throws on all ranks what it throws
/// on any.
LoadedWeights load_weights_together(const std::string& folder, const Job& job, TrainingState& state);

}  // namespace lockstep::trainer
