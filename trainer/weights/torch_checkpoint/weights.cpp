#include "trainer/weights/torch_checkpoint/weights.h"

#include <ATen/Functions.h>

#include <array>
#include <filesystem>
#include <set>

#include "core/error.h"
#include "core/files/random_access_file.h"
#include "trainer/weights/model_sizes.h"
#include "trainer/weights/torch_checkpoint/saved_tensors.h"
#include "trainer/weights/torch_checkpoint/stored_tensor.h"

namespace lockstep::trainer {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kLargestMetadata = int64_t{1} << 30;
constexpr std::string_view kModel = "model.";
/// What torchtitan saves beside the model, and a table that its older versions had in it.
constexpr std::array<std::string_view, 5> kBeside{"optimizer.", "lr_scheduler", "dataloader", "train_state",
                                                  "freqs_cis"};

std::string path_in(const std::string& folder, const std::string& file) { return (fs::path(folder) / file).string(); }

bool is_beside(std::string_view name) {
  if (name.starts_with(kModel)) name.remove_prefix(kModel.size());
  return std::any_of(kBeside.begin(), kBeside.end(), [&](auto prefix) { return name.starts_with(prefix); });
}

std::map<std::string, SavedTensor> tensors_in(const std::string& folder) {
  const RandomAccessFile file(path_in(folder, ".metadata"));
  return saved_tensors(file.text(kLargestMetadata), file.path(),
                       [](const std::string& name) { return !is_beside(name); });
}

class TorchCheckpoint final : public WeightSource {
 public:
  TorchCheckpoint(const std::string& folder, const ModelSection& model)
      : folder_(folder), model_(with_all_sizes(model)), sizes_(stored_sizes(model_)), tensors_(tensors_in(folder)) {
    std::set<std::string> known;
    for (const auto& [name, sizes] : sizes_) known.insert(require(name, sizes));
    for (const auto& [name, tensor] : tensors_)
      if (!known.contains(name) && !is_beside(name))
        fail<BadInput>("{}: holds {}, which the job's model has not.", folder_, name);
  }

  const std::string& path() const override { return folder_; }
  const ModelSection& model() const override { return model_; }
  const std::map<std::string, std::vector<int64_t>>& sizes() const override { return sizes_; }

  at::Tensor rows(const std::string& name, int64_t first, int64_t count) const override {
    const auto& sizes = sizes_.at(name);
    const auto saved_name = name_of(name);
    Box wanted = Box::whole(sizes);
    wanted.offset[0] = first, wanted.size[0] = count;
    auto rows = at::empty(wanted.size, at::kFloat);
    const auto& tensor = tensors_.at(saved_name);
    for (const auto& part : tensor.parts) {
      const auto both = part.box.overlap(wanted);
      if (both.elements() > 0) within(rows, both, wanted).copy_(within(read(saved_name, tensor, part), both, part.box));
    }
    return rows;
  }

 private:
  at::Tensor read(const std::string& name, const SavedTensor& tensor, const SavedPart& part) const {
    if (last_.part != &part) {
      const RandomAccessFile file(path_in(folder_, part.file));
      last_ = {&part, read_stored_tensor(file, part.offset, part.length, name, tensor.dtype, part.box.size)};
    }
    return last_.tensor;
  }

  /// `box` of a tensor that begins where `whole` does.
  static at::Tensor within(at::Tensor tensor, const Box& box, const Box& whole) {
    for (size_t dim = 0; dim < box.size.size(); ++dim)
      tensor = tensor.narrow(static_cast<int64_t>(dim), box.offset[dim] - whole.offset[dim], box.size[dim]);
    return tensor;
  }

  std::string name_of(const std::string& name) const {
    return tensors_.contains(name) ? name : std::string(kModel) + name;
  }

  std::string require(const std::string& name, const std::vector<int64_t>& sizes) const {
    const auto found = tensors_.find(name_of(name));
    if (found == tensors_.end()) fail<BadInput>("{}: has no {}, which the job's model has.", folder_, name);
    const auto& dtype = found->second.dtype;
    if (found->second.sizes != sizes)
      fail<BadInput>("{}: {} has sizes {}, the job's model has {}.", folder_, name,
                     c10::str(c10::IntArrayRef(found->second.sizes)), c10::str(c10::IntArrayRef(sizes)));
    if (dtype != "float32" && dtype != "float16" && dtype != "bfloat16")
      fail<BadInput>("{}: {} is {}; weights are float32, float16 or bfloat16.", folder_, name, dtype);
    return found->first;
  }

  std::string folder_;
  ModelSection model_;
  std::map<std::string, std::vector<int64_t>> sizes_;
  std::map<std::string, SavedTensor> tensors_;

  /// Rows of a part mostly are asked for one after the other.
  struct LastRead {
    const SavedPart* part = nullptr;
    at::Tensor tensor;
  };
  mutable LastRead last_;
};

}  // namespace

bool is_torch_checkpoint_folder(const std::string& folder) { return fs::exists(path_in(folder, ".metadata")); }

std::unique_ptr<WeightSource> open_torch_checkpoint(const std::string& folder, const ModelSection& model) {
  if (model.name != "llama3")
    fail<BadInput>("{}: a checkpoint of PyTorch's is read for llama3 alone; the job's model is {}.", folder,
                   model.name);
  return std::make_unique<TorchCheckpoint>(folder, model);
}

}  // namespace lockstep::trainer
