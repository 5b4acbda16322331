#include "trainer/weights/checkpoint_weights.h"

#include <ATen/Functions.h>

#include <cstring>
#include <filesystem>

#include "core/error.h"
#include "trainer/checkpoint/checkpoint_file.h"
#include "trainer/job/job_file.h"
#include "trainer/optim/parameter_state.h"
#include "trainer/weights/model_sizes.h"

namespace lockstep::trainer {
namespace {

class CheckpointWeights final : public WeightSource {
 public:
  CheckpointWeights(const std::string& folder, CheckpointPart part)
      : folder_(folder),
        checkpoint_(folder),
        job_(parse_saved_job(checkpoint_.metadata().job, folder)),
        model_(with_all_sizes(job_.model)) {
    for (const auto& [name, record] : checkpoint_.tensors()) {
      if (part == CheckpointPart::kWeights && name.starts_with(kOptimizerPrefix)) continue;
      if (record.dtype != "F32") fail<BadInput>("{}: {} is {}, not F32.", folder, name, record.dtype);
      sizes_[name] = record.shape;
    }
  }

  const std::string& path() const override { return folder_; }
  const ModelSection& model() const override { return model_; }
  const LoraSection& lora() const override { return job_.lora; }
  const std::map<std::string, std::vector<int64_t>>& sizes() const override { return sizes_; }

  at::Tensor rows(const std::string& name, int64_t first, int64_t count) const override {
    auto box = Box::whole(sizes_.at(name));
    box.offset[0] = first, box.size[0] = count;
    auto rows = at::empty(box.size, at::kFloat);
    const auto bytes = checkpoint_.read(name, box);
    LOCKSTEP_CHECK_EQ(bytes.size(), rows.nbytes());
    std::memcpy(rows.mutable_data_ptr(), bytes.data(), bytes.size());
    return rows;
  }

 private:
  std::string folder_;
  Checkpoint checkpoint_;
  Job job_;
  ModelSection model_;
  std::map<std::string, std::vector<int64_t>> sizes_;
};

}  // namespace

bool is_checkpoint_folder(const std::string& folder) {
  return std::filesystem::exists(std::filesystem::path(folder) / kIndexFile);
}

std::unique_ptr<WeightSource> open_checkpoint(const std::string& folder, CheckpointPart part) {
  return std::make_unique<CheckpointWeights>(folder, part);
}

}  // namespace lockstep::trainer
