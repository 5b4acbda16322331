#include "trainer/weights/hugging_face/weights.h"

#include <ATen/Functions.h>

#include <filesystem>
#include <set>

#include "core/error.h"
#include "trainer/weights/hugging_face/config.h"
#include "trainer/weights/hugging_face/names.h"
#include "trainer/weights/hugging_face/rotary_rows.h"
#include "trainer/weights/hugging_face/safetensors_folder.h"
#include "trainer/weights/model_sizes.h"

namespace lockstep::trainer {
namespace {

constexpr auto kConfig = "config.json";
constexpr std::string_view kTransformer = "transformer.";

std::string config_path(const std::string& folder) { return (std::filesystem::path(folder) / kConfig).string(); }

/// Where one of our tensors is.
struct Origin {
  const ForeignTensor* tensor;
  std::string name;   ///< in the files
  int64_t first_row;  ///< of ours among the rows of all parts
};

class HuggingFaceWeights final : public WeightSource {
 public:
  explicit HuggingFaceWeights(const std::string& folder)
      : files_(folder),
        model_(read_hugging_face_config(config_path(folder))),
        sizes_(stored_sizes(model_)),
        tensors_(hugging_face_tensors(model_)) {
    std::set<std::string> known;
    for (const auto& tensor : tensors_) known.insert(add(tensor));
    for (const auto& name : files_.names())
      if (!known.contains(name) && !holds_no_weight(model_, name)) require_tied_head(name);
  }

  const std::string& path() const override { return files_.path(); }
  const ModelSection& model() const override { return model_; }
  const std::map<std::string, std::vector<int64_t>>& sizes() const override { return sizes_; }

  at::Tensor rows(const std::string& name, int64_t first, int64_t count) const override {
    const auto& all = origins_.at(name);
    if (all[0].tensor->expert >= 0) return matrices(all, first, count);
    const auto& origin = all[0];
    if (origin.tensor->transposed) {
      const auto columns = files_.rows(origin.name, 0, files_.sizes(origin.name)[0]);
      return columns.narrow(1, origin.first_row + first, count).t().contiguous();
    }
    const auto read = [&](int64_t from, int64_t rows) {
      return files_.rows(origin.name, origin.first_row + from, rows);
    };
    return origin.tensor->rotary_head_size > 0 ? pairs_together(read, origin.tensor->rotary_head_size, first, count)
                                               : read(first, count);
  }

 private:
  /// Of experts.
  at::Tensor matrices(const std::vector<Origin>& experts, int64_t first, int64_t count) const {
    const auto& sizes = files_.sizes(experts[0].name);
    auto all = at::empty({count, sizes[0], sizes[1]}, at::kFloat);
    for (int64_t e = 0; e < count; ++e)
      all[e].copy_(files_.rows(experts[static_cast<size_t>(first + e)].name, 0, sizes[0]));
    return all;
  }

  /// Its name in the files: GPT-2's oldest ones leave the first word out.
  std::string add(const ForeignTensor& tensor) {
    auto name = tensor.name;
    if (!files_.holds(name) && name.starts_with(kTransformer)) name = name.substr(kTransformer.size());
    if (!files_.holds(name))
      fail<BadInput>("{}: has no {}, which the model of its {} has.", path(), tensor.name, kConfig);
    std::vector<int64_t> wanted;
    int64_t rows = 0;
    for (const auto& part : tensor.parts) {
      wanted = sizes_.at(part);
      if (tensor.expert >= 0) wanted.erase(wanted.begin());
      origins_[part].push_back({&tensor, name, rows});
      rows += wanted[0];
    }
    wanted[0] = rows;
    if (tensor.transposed) std::reverse(wanted.begin(), wanted.end());
    if (files_.sizes(name) != wanted)
      fail<BadInput>("{}: {} has sizes {}; the model of its {} has {}.", path(), name,
                     c10::str(c10::IntArrayRef(files_.sizes(name))), kConfig, c10::str(c10::IntArrayRef(wanted)));
    return name;
  }

  /// A head that is stored though the model's is its embedding must be the same.
  void require_tied_head(const std::string& name) const {
    const auto& table = origins_.at("tok_embeddings.weight")[0].name;
    const bool is_tied = model_.tied_head.value_or(true) && name == "lm_head.weight";
    if (!is_tied) fail<BadInput>("{}: holds {}, which the model of its {} has not.", path(), name, kConfig);
    const auto rows = files_.sizes(table)[0];
    if (files_.sizes(name) != files_.sizes(table) || !files_.rows(name, 0, rows).equal(files_.rows(table, 0, rows)))
      fail<BadInput>("{}: {} is not {}, though {} says that they are tied.", path(), name, table, kConfig);
  }

  SafetensorsFolder files_;
  ModelSection model_;
  std::map<std::string, std::vector<int64_t>> sizes_;
  std::vector<ForeignTensor> tensors_;
  std::map<std::string, std::vector<Origin>> origins_;  ///< one, but of experts' matrices
};

}  // namespace

bool is_hugging_face_folder(const std::string& folder) {
  return std::filesystem::exists(config_path(folder)) && is_safetensors_folder(folder);
}

std::unique_ptr<WeightSource> open_hugging_face(const std::string& folder) {
  return std::make_unique<HuggingFaceWeights>(folder);
}

}  // namespace lockstep::trainer
