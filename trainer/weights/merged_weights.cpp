#include "trainer/weights/merged_weights.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include "core/error.h"
#include "runtime/kernels/tensors/canonical_products.h"

namespace lockstep::trainer {
namespace {

constexpr std::string_view kA = ".lora_a", kB = ".lora_b", kMagnitude = ".magnitude", kWeight = ".weight";

/// "layers.0.wq.weight" and ".lora_b" -> "layers.0.wq.lora_b"
std::string beside(const std::string& weight, std::string_view kind) {
  return weight.substr(0, weight.size() - kWeight.size()).append(kind);
}

/// Which weights a change is of: of "a.wq+wk.lora_a" they are "a.wq.weight" and "a.wk.weight".
std::vector<std::string> weights_of(const std::string& a) {
  const auto names = a.substr(0, a.size() - kA.size());
  const auto path = names.substr(0, names.rfind('.') + 1);
  std::vector<std::string> weights;
  for (size_t at = path.size(), end; at <= names.size(); at = end + 1) {
    end = std::min(names.find('+', at), names.size());
    weights.push_back(path + names.substr(at, end - at).append(kWeight));
  }
  return weights;
}

/// As canonical sums have them; none is 0 (models::row_lengths()).
at::Tensor lengths_of_rows(const at::Tensor& matrix) {
  const auto squares = kernels::linear(matrix * matrix, at::ones({1, matrix.size(1)}));
  return at::clamp_min(at::sqrt(squares), 1e-30);
}

class MergedWeights final : public WeightSource {
 public:
  explicit MergedWeights(std::unique_ptr<WeightSource> source) : source_(std::move(source)) {
    if (!source_->lora().enabled()) fail<BadInput>("{}: holds no changes of low rank to merge.", path());
    for (const auto& [name, sizes] : source_->sizes())
      if (name.ends_with(kA))
        for (const auto& weight : weights_of(name)) changes_[weight] = name;
    for (const auto& [name, sizes] : source_->sizes())
      if (!name.ends_with(kA) && !name.ends_with(kB) && !name.ends_with(kMagnitude)) sizes_[name] = sizes;
    for (const auto& [weight, a] : changes_) require_fit(weight, a);
  }

  const std::string& path() const override { return source_->path(); }
  const ModelSection& model() const override { return source_->model(); }
  const std::map<std::string, std::vector<int64_t>>& sizes() const override { return sizes_; }

  at::Tensor rows(const std::string& name, int64_t first, int64_t count) const override {
    const auto weight = source_->rows(name, first, count);
    const auto found = changes_.find(name);
    return found == changes_.end() ? weight : changed(weight, name, found->second, first);
  }

 private:
  at::Tensor changed(const at::Tensor& weight, const std::string& name, const std::string& a, int64_t first) const {
    const auto& lora = source_->lora();
    const auto b = source_->rows(beside(name, kB), first, weight.size(0));
    const auto change = kernels::product(b, whole_tensor(*source_, a));
    const auto sum = weight + at::mul(change, lora.alpha / static_cast<double>(lora.rank));
    if (!lora.dora) return sum;
    const auto magnitude = source_->rows(beside(name, kMagnitude), first, weight.size(0));
    return sum / lengths_of_rows(sum) * magnitude.unsqueeze(1);
  }

  void require_sizes(const std::string& name, const std::vector<int64_t>& wanted) const {
    const auto found = source_->sizes().find(name);
    if (found == source_->sizes().end() || found->second != wanted)
      fail<BadInput>("{}: has no {} of sizes {}, which its changes of low rank need.", path(), name,
                     c10::str(c10::IntArrayRef(wanted)));
  }

  void require_fit(const std::string& weight, const std::string& a) const {
    const auto found = sizes_.find(weight);
    if (found == sizes_.end() || found->second.size() != 2)
      fail<BadInput>("{}: {} is of no weight: there is no matrix {}.", path(), a, weight);
    require_sizes(a, {source_->lora().rank, found->second[1]});
    require_sizes(beside(weight, kB), {found->second[0], source_->lora().rank});
    if (source_->lora().dora) require_sizes(beside(weight, kMagnitude), {found->second[0]});
  }

  std::unique_ptr<WeightSource> source_;
  std::map<std::string, std::vector<int64_t>> sizes_;
  std::map<std::string, std::string> changes_;  ///< by weight: its A
};

}  // namespace

std::unique_ptr<WeightSource> merged(std::unique_ptr<WeightSource> source) {
  return std::make_unique<MergedWeights>(std::move(source));
}

}  // namespace lockstep::trainer
