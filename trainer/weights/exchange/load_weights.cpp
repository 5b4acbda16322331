#include "trainer/weights/exchange/load_weights.h"

#include <ATen/core/grad_mode.h>
#include <fmt/ranges.h>

#include <set>

#include "core/error.h"
#include "runtime/plain/plain_tensors.h"
#include "runtime/tensor/sharded_tensor.h"
#include "trainer/job/job_keys.h"
#include "trainer/launch/together.h"
#include "trainer/state/stored_tensors.h"
#include "trainer/weights/exchange/open_weights.h"
#include "trainer/weights/model_sizes.h"

namespace lockstep::trainer {
namespace {

bool has(const WeightSource& source, const ParameterState& entry) {
  return source.sizes().contains(entry.division.parts()[0].name);
}

/// Changes of low rank mean what the job that trained them says of them.
void require_same_changes(const WeightSource& source, const LoraSection& lora) {
  Job saved, wanted;
  saved.lora = source.lora(), wanted.lora = lora;
  for (const auto* name : {"lora.rank", "lora.alpha", "lora.dora"}) {
    const auto& key = *find_job_key(name);
    if (key.text(saved) != key.text(wanted))
      fail<BadInput>(
          "{}: holds changes of low rank with {} {}; the job's is {}. Give the job theirs, or merge them into the "
          "weights: lockstep checkpoint merge.",
          source.path(), name, key.text(saved), key.text(wanted));
  }
}

/// All of them or none.
LoadedWeights adapters_in(const WeightSource& source, const Job& job, const TrainingState& state) {
  if (source.lora().enabled()) require_same_changes(source, job.lora);
  for (const auto& entry : state)
    if (entry.is_adapter && has(source, entry)) return LoadedWeights::kAndAdapters;
  return LoadedWeights::kModel;
}

bool loads(const ParameterState& entry, LoadedWeights what) {
  return !entry.is_adapter || what == LoadedWeights::kAndAdapters;
}

void require_same_tensors(const WeightSource& source, const TrainingState& state, LoadedWeights what) {
  std::set<std::string> wanted;
  for (const auto& entry : state)
    for (size_t part = 0; loads(entry, what) && part < entry.division.parts().size(); ++part) {
      const auto& name = entry.division.parts()[part].name;
      const auto found = source.sizes().find(name);
      if (found == source.sizes().end())
        fail<BadInput>("{}: has no {}, which the job's model has.", source.path(), name);
      if (found->second != entry.division.sizes_of(part))
        fail<BadInput>("{}: {} has sizes {}, the job's model has {}.", source.path(), name,
                       c10::str(c10::IntArrayRef(found->second)),
                       c10::str(c10::IntArrayRef(entry.division.sizes_of(part))));
      wanted.insert(name);
    }
  for (const auto& [name, sizes] : source.sizes())
    if (!wanted.contains(name)) fail<BadInput>("{}: holds {}, which the job's model has not.", source.path(), name);
}

/// The columns of a piece, of rows that have them all.
at::Tensor columns_of(at::Tensor rows, const Box& box) {
  for (size_t dim = 1; dim < box.size.size(); ++dim)
    rows = rows.narrow(static_cast<int64_t>(dim), box.offset[dim], box.size[dim]);
  return rows;
}

/// Simulated ranks mostly hold the same rows one after the other.
struct LastRead {
  std::string name;
  int64_t first = -1, count = -1;
  at::Tensor rows;

  const at::Tensor& of(const WeightSource& source, const std::string& wanted, const Box& box) {
    if (wanted != name || box.offset[0] != first || box.size[0] != count) {
      name = wanted, first = box.offset[0], count = box.size[0];
      rows = source.rows(name, first, count);
    }
    return rows;
  }
};

void load_part(const WeightSource& source, const Stored& stored, size_t part, LastRead& last) {
  const auto& shards = sharded(stored.tensor).shards()->whole();
  for (size_t i = 0; i < shards.size(); ++i) {
    const auto held = held_box(stored.spec(), i);
    for (const auto& piece : pieces_of(stored.division, held))
      if (piece.part == part)
        put(shards[i], held, piece, columns_of(last.of(source, stored.name(part), piece.box), piece.box));
  }
}

}  // namespace

void require_same_model(const WeightSource& source, const ModelSection& model) {
  const auto differences = model_differences(source.model(), with_all_sizes(model));
  if (!differences.empty())
    fail<BadInput>("{}: holds weights of another model: {}. Give the job the model of the weights.", source.path(),
                   fmt::join(differences, "; "));
}

LoadedWeights load_weights(const WeightSource& source, const Job& job, TrainingState& state) {
  const at::NoGradGuard no_grad;
  const PlainTensors guard;
  require_same_model(source, job.model);
  const auto what = adapters_in(source, job, state);
  require_same_tensors(source, state, what);
  LastRead last;
  for (const auto& entry : state) {
    const Stored stored{entry.value, entry.division, ""};
    for (size_t part = 0; loads(entry, what) && part < entry.division.parts().size(); ++part)
      load_part(source, stored, part, last);
  }
  return what;
}

LoadedWeights load_weights_together(const std::string& folder, const Job& job, TrainingState& state) {
  for (const auto& entry : state) sharded(entry.value).shards()->whole();
  auto what = LoadedWeights::kModel;
  together(layout_of(state.at(0).value).mesh().whole(),
           [&] { what = load_weights(*open_weights(folder, &job.model), job, state); });
  return what;
}

}  // namespace lockstep::trainer
