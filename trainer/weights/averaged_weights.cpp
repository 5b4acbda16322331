#include "trainer/weights/averaged_weights.h"

#include "core/error.h"
#include "trainer/optim/parameter_state.h"
#include "trainer/weights/checkpoint_weights.h"

namespace lockstep::trainer {
namespace {

std::string average_of(const std::string& name) { return fmt::format("{}average.{}", kOptimizerPrefix, name); }

class AveragedWeights final : public WeightSource {
 public:
  explicit AveragedWeights(const std::string& folder) : all_(open_checkpoint(folder, CheckpointPart::kAll)) {
    bool has_averages = false;
    for (const auto& [name, sizes] : all_->sizes()) {
      if (name.starts_with(kOptimizerPrefix)) continue;
      sizes_[name] = sizes;
      has_averages |= all_->sizes().contains(average_of(name));
    }
    if (!has_averages)
      fail<BadInput>("{}: holds no averages of weights; a job keeps them with optimizer.ema_decay.", folder);
  }

  const std::string& path() const override { return all_->path(); }
  const ModelSection& model() const override { return all_->model(); }
  const LoraSection& lora() const override { return all_->lora(); }
  const std::map<std::string, std::vector<int64_t>>& sizes() const override { return sizes_; }

  at::Tensor rows(const std::string& name, int64_t first, int64_t count) const override {
    const auto average = average_of(name);
    return all_->rows(all_->sizes().contains(average) ? average : name, first, count);
  }

 private:
  std::unique_ptr<WeightSource> all_;
  std::map<std::string, std::vector<int64_t>> sizes_;
};

}  // namespace

std::unique_ptr<WeightSource> open_averages(const std::string& folder) {
  return std::make_unique<AveragedWeights>(folder);
}

}  // namespace lockstep::trainer
