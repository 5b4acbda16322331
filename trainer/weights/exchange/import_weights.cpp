#include <ATen/Functions.h>

#include "core/digest/place_digest.h"
#include "core/error.h"
#include "runtime/plain/tensor_bytes.h"
#include "trainer/checkpoint/checkpoint_file.h"
#include "trainer/checkpoint/checkpoint_names.h"
#include "trainer/job/job_file.h"
#include "trainer/weights/checkpoint_weights.h"
#include "trainer/weights/exchange/exchange_weights.h"
#include "trainer/weights/exchange/load_weights.h"
#include "trainer/weights/exchange/new_folder.h"
#include "trainer/weights/exchange/open_weights.h"

namespace lockstep::trainer {
namespace {

constexpr int64_t kFileBytes = int64_t{1} << 30;

/// Tensors on their way into files: those that fill one go together.
class ChunkWriter {
 public:
  explicit ChunkWriter(std::string folder) : folder_(std::move(folder)), attempt_(next_attempt(folder_)) {}

  void add(const std::string& name, const at::Tensor& tensor, int64_t chunks = 1) {
    const auto shape = tensor.sizes().vec();
    for (int64_t i = 0, first = 0; i < chunks; ++i) {
      const auto end = shape[0] * (i + 1) / chunks;
      if (end > first || (i == 0 && shape[0] == 0)) add_rows(name, shape, first, tensor.narrow(0, first, end - first));
      first = end;
    }
    digest_.add(PlaceDigest::key(name), 0, bytes_of(tensor.contiguous()));
  }

  /// Of all that was added, as state_digest() has it.
  std::string digest() const { return digest_.result().text(); }

  void commit(const CheckpointMetadata& metadata) {
    flush();
    commit_checkpoint(folder_, metadata, written_);
  }

 private:
  void add_rows(const std::string& name, const std::vector<int64_t>& shape, int64_t first, const at::Tensor& rows) {
    if (bytes_ > 0 && bytes_ + static_cast<int64_t>(rows.nbytes()) > kFileBytes) flush();
    kept_.push_back(rows.contiguous());
    bytes_ += static_cast<int64_t>(rows.nbytes());
    auto box = Box::whole(shape);
    box.offset[0] = first, box.size[0] = rows.size(0);
    chunks_.push_back({name, "F32", shape, box, bytes_of(kept_.back())});
  }

  void flush() {
    written_.push_back(write_chunks(folder_, attempt_, static_cast<int64_t>(written_.size()), chunks_));
    chunks_.clear(), kept_.clear();
    bytes_ = 0;
  }

  std::string folder_;
  int64_t attempt_, bytes_ = 0;
  std::vector<at::Tensor> kept_;
  std::vector<ChunkToSave> chunks_;
  std::vector<CheckpointIndex> written_;
  PlaceDigest digest_;
};

/// A checkpoint of step 0, without optimizer state.
void write_model(const WeightSource& source, const std::string& to, const std::string& description,
                 const WeightsProgress& progress) {
  ChunkWriter writer(to);
  int64_t done = 0;
  for (const auto& [name, sizes] : source.sizes()) {
    writer.add(name, whole_tensor(source, name));
    if (progress) progress(++done, static_cast<int64_t>(source.sizes().size()));
  }
  Job job;
  job.model = source.model();
  job.job.description = description;
  writer.commit({.step = 0, .sample = 0, .job = to_toml(job), .state = writer.digest()});
}

}  // namespace

void import_weights(const std::string& from, const std::string& to, const ModelSection* model,
                    const WeightsProgress& progress) {
  require_new_folder(to);
  const auto source = open_weights(from, model);
  if (model) require_same_model(*source, *model);
  if (source->lora().enabled())
    fail<BadInput>(
        "{}: holds changes of low rank, which mean nothing by themselves. Merge them: lockstep checkpoint merge.",
        from);
  write_model(*source, to, "weights of " + from, progress);
}

void merge_weights(const std::string& from, const std::string& to, bool averages, const WeightsProgress& progress) {
  require_new_folder(to);
  const auto source = open_model(from, averages);
  if (!averages && !open_weights(from)->lora().enabled())
    fail<BadInput>("{}: holds no changes of low rank to merge.", from);
  write_model(*source, to, "merged weights of " + from, progress);
}

void reshard_checkpoint(const std::string& from, const std::string& to, int64_t chunks,
                        const WeightsProgress& progress) {
  require_new_folder(to);
  const auto metadata = saved_metadata(from);
  require_own_name(to, metadata.step);
  const auto source = open_checkpoint(from, CheckpointPart::kAll);
  ChunkWriter writer(to);
  int64_t done = 0;
  for (const auto& [name, sizes] : source->sizes()) {
    writer.add(name, whole_tensor(*source, name), chunks);
    if (progress) progress(++done, static_cast<int64_t>(source->sizes().size()));
  }
  if (!metadata.state.empty() && writer.digest() != metadata.state)
    fail<FileError>("{}: what was read has digest {}, the state that was saved {}. Report this.", from, writer.digest(),
                    metadata.state);
  writer.commit(metadata);
}

}  // namespace lockstep::trainer
