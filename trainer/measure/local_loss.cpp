#include "trainer/measure/local_loss.h"

#include <ATen/Functions.h>

#include "runtime/plain/plain_tensors.h"
#include "runtime/tensor/sharded_tensor.h"

namespace lockstep::trainer {

void LocalLosses::add(const at::Tensor& losses, const at::Tensor& has_label) {
  const PlainTensors guard;
  const auto& shards = sharded(losses).shards();
  if (shards->is_partial()) return;
  const auto& here = shards->whole();
  sums_.resize(here.size());
  for (size_t i = 0; i < here.size(); ++i) {
    const auto sum = at::sum(here[i], c10::kDouble);
    sums_[i].loss = sums_[i].loss.defined() ? at::add(sums_[i].loss, sum) : sum;
    sums_[i].tokens += at::sum(cut_out(spec_of(losses), has_label, i)).item<double>();
  }
}

std::vector<LocalLoss> LocalLosses::take() {
  const PlainTensors guard;
  if (sums_.empty()) return {};
  std::vector<at::Tensor> sums;
  for (const auto& sum : sums_) sums.push_back(sum.loss);
  const auto here = at::stack(sums).cpu();
  std::vector<LocalLoss> all;
  for (size_t i = 0; i < sums_.size(); ++i) all.push_back({here.const_data_ptr<double>()[i], sums_[i].tokens});
  sums_.clear();
  return all;
}

}  // namespace lockstep::trainer
