#include "trainer/recording/recorded_job.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <string_view>

#include "core/error.h"
#include "runtime/tensor/sharded_tensor.h"
#include "trainer/job/batching.h"
#include "trainer/job/job_file.h"

namespace lockstep::trainer {
namespace {

void require_same(std::string_view key, int64_t job, const char* what, int64_t recording) {
  if (job != recording) fail<BadInput>("the recorded job has {} = {}, the recording {} {}", key, job, what, recording);
}

/// A model of shapes costs next to nothing, but one of a billion layers: each of them keeps a tensor at least.
void require_layers_recorded(const replay::StepRecording& recording, const Job& job) {
  const auto layers = job.model.layers.value_or(0);
  if (recording.has_state && layers > static_cast<int64_t>(recording.state.size()))
    fail<FileError>("the recorded job has model.layers = {}, the recorded state {} tensors", layers,
                    recording.state.size());
}

/// The part of a tensor that a rank holds.
std::vector<int64_t> sizes_on(const at::Tensor& tensor, int rank) {
  const auto& spec = spec_of(tensor);
  std::vector<int64_t> sizes;
  for (int dim = 0; dim < spec.dim_count(); ++dim)
    sizes.push_back(spec.layout.cut(rank, dim, spec.sizes[static_cast<size_t>(dim)]).length);
  return sizes;
}

using Recorded = std::map<std::string, const replay::RecordedTensor*, std::less<>>;

void require_tensor(Recorded& recorded, const std::string& name, const std::vector<int64_t>& sizes) {
  const auto found = recorded.extract(name);
  if (found.empty()) fail<FileError>("the recorded state has no {}", name);
  if (found.mapped()->sizes != sizes)
    fail<FileError>("the recorded state has {} of [{}], the job makes it [{}]", name,
                    fmt::join(found.mapped()->sizes, ", "), fmt::join(sizes, ", "));
}

}  // namespace

Job recorded_job(const replay::StepRecording& recording, std::span<const Setting> changes) {
  auto job = resolve(parse_saved_job(recording.job, "the recorded job", changes), {});
  const auto mesh = mesh_of(job);
  if (mesh.ranks() != recording.world)
    fail<BadInput>("the recorded job is of mesh {}, which has {} ranks; the recording is of {}", mesh.text(),
                   mesh.ranks(), recording.world);
  require_same("training.global_batch_size", job.training.global_batch_size, "a batch of", recording.rows);
  require_same("training.seq_len", job.training.seq_len, "sequences of", recording.seq_len);
  return job;
}

void require_state_fits(const replay::StepRecording& recording, const Job& job,
                        const std::function<std::unique_ptr<models::Model>()>& make_model) {
  require_layers_recorded(recording, job);
  TrainingRun::Options options;
  options.mesh = mesh_of(job);
  options.meta = true;
  options.make_model = make_model;
  TrainingRun shapes(job, std::move(options));
  Recorded recorded;
  for (const auto& tensor : recording.state) recorded[tensor.name] = &tensor;
  for (const auto& entry : shapes.state())
    for (const auto& [prefix, tensor] : entry.tensors())
      if (std::ranges::binary_search(layout_of(tensor).mesh().ranks(), static_cast<int>(recording.rank)))
        require_tensor(recorded, prefix + entry.name, sizes_on(tensor, recording.rank));
  if (!recorded.empty())
    fail<FileError>("the recorded state has {}, which the job does not make", recorded.begin()->first);
}

}  // namespace lockstep::trainer
